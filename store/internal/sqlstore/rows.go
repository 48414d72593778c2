package sqlstore

import "sync"

// rows names rows for databases in which several processes write: each takes a block of names at a time.
type rows struct {
	mu    sync.Mutex
	next  int64
	limit int64 // the first name that is not ours any more
}

// rowBlock is how many names the query rows gives.
const rowBlock = 1000

// take returns the first of n names in a row, at most a block.
func (r *rows) take(n int, more func() (int64, error)) (int64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next+int64(n) > r.limit {
		first, err := more()
		if err != nil {
			return 0, err
		}
		r.next, r.limit = first, first+rowBlock
	}
	first := r.next
	r.next += int64(n)
	return first, nil
}
