package combine

// call is one caller with its items. The group's mutex guards queued, leads and the links; results and err are written
// before turn is closed and read after.
type call[T, R any] struct {
	items   []T
	bytes   int
	results []R
	err     error
	turn    chan struct{} // closed when the caller is to lead, or its results are there

	queued     bool
	leads      bool
	prev, next *call[T, R]
}

// distribute gives each follower its part of the results, those of the leader's own items left out, and wakes it.
func distribute[T, R any](followers []*call[T, R], from int, results []R, err error) {
	for _, f := range followers {
		to := from + len(f.items)
		if f.err = err; err == nil {
			f.results = results[from:to:to]
		}
		from = to
		close(f.turn)
	}
}

// queue is the line of callers, linked so that one can leave from its middle.
type queue[T, R any] struct {
	first, last *call[T, R]
	length      int
}

// push puts a caller at the end.
func (q *queue[T, R]) push(c *call[T, R]) {
	c.queued, c.prev = true, q.last
	q.length++
	if q.last == nil {
		q.first = c
	} else {
		q.last.next = c
	}
	q.last = c
}

// remove takes a caller out.
func (q *queue[T, R]) remove(c *call[T, R]) {
	q.length--
	if c.prev == nil {
		q.first = c.next
	} else {
		c.prev.next = c.next
	}
	if c.next == nil {
		q.last = c.prev
	} else {
		c.next.prev = c.prev
	}
	c.queued, c.prev, c.next = false, nil, nil
}
