package redisstore

import (
	"context"
	"errors"
	"slices"

	"github.com/belfryhq/belfry/store"
)

// fewMessages is how many an index must narrow a query to, at most, for all of them to be read at once.
const fewMessages = 2000

// stream is what matches a query in one queue, in order, read a stretch at a time.
type stream struct {
	queue string
	from  place // where the next stretch begins
	begin int   // 0: at the beginning; 1: after from; 2: with from
	rows  []place
	done  bool
}

// newStream returns the stream of a queue that begins after a place, which may be of another queue.
func (o sorter) newStream(queue string, after *place) *stream {
	st := &stream{queue: queue}
	if after != nil {
		st.from, st.begin = *after, 1
		if queue > after.queue != o.desc && queue != after.queue {
			st.begin = 2
		}
	}
	return st
}

// call returns the call that reads the next stretch.
func (st *stream) call(s *Store, o sorter, f *filter, count bool, want int) *call {
	var t targets
	t.number(s.keys, st.queue)
	args := []any{btoi(count), o.index(), btoi(o.desc), st.begin, st.from.key, st.from.id, want, fewMessages}
	return &call{script: s.scripts.list, keys: t.keys, args: append(args, f.args()...)}
}

// errListAnswer: a script's answer has not the form that it should.
var errListAnswer = errors.New("script list gave an answer of another form")

// read reads a stretch, or all that is left where the script gave all. In a count it returns how many.
func (st *stream) read(c *call, o sorter) (int64, error) {
	answer := c.list()
	if len(answer) == 1 {
		return 0, nil // the next call goes on
	}
	if len(answer) < 2 {
		return 0, errListAnswer
	}
	n, rows := asInt(answer[1]), asList(answer[1])
	begin, after := st.begin, st.from
	all := asInt(answer[0]) == 1
	if !all {
		if len(answer) != 4 {
			return 0, errListAnswer
		}
		id := asText(answer[3])
		if st.done = id == ""; !st.done {
			key, err := parseInstant(asText(answer[2]))
			if err != nil {
				return 0, err
			}
			st.from, st.begin = place{key, id, st.queue}, 1
		}
	}
	for i := 0; i+1 < len(rows); i += 2 {
		key, err := parseInstant(asText(rows[i]))
		if err != nil {
			return 0, err
		}
		st.rows = append(st.rows, place{key, asText(rows[i+1]), st.queue})
	}
	if all {
		st.done = true
		if begin != 0 {
			st.rows = slices.DeleteFunc(st.rows, func(p place) bool { return o.compare(p, after) <= 0 })
		}
		slices.SortFunc(st.rows, o.compare)
	}
	return n, nil
}

// readAll reads the next stretch of each stream.
func (s *Store) readAll(ctx context.Context, streams []*stream, o sorter, f *filter, want int) error {
	calls := make([]*call, len(streams))
	for i, st := range streams {
		calls[i] = st.call(s, o, f, false, want)
	}
	if err := s.run(ctx, calls...); err != nil {
		return err
	}
	for i, st := range streams {
		if _, err := st.read(calls[i], o); err != nil {
			return err
		}
	}
	return nil
}

// manyQueues is how many queues it takes before it pays to look which of them have anything.
const manyQueues = 16

// selected returns the queues that a query asks about, of many those alone that have something in a state it asks for.
func (s *Store) selected(ctx context.Context, q *store.Query, f *filter) ([]string, error) {
	if q.Queue != "" {
		return []string{q.Queue}, nil
	}
	names, err := s.names(ctx, q.Prefix, "")
	if err != nil || len(names) <= manyQueues {
		return names, err
	}
	var some []string
	err = s.sizes(ctx, names, f, func(queue string, n int64) {
		if n > 0 {
			some = append(some, queue)
		}
	})
	return some, err
}

// sizes tells how many messages each queue has in the states that are asked for.
func (s *Store) sizes(ctx context.Context, names []string, f *filter, tell func(queue string, n int64)) error {
	return s.probe(ctx, names, probe{s.scripts.sizes, []any{f.states}, false}, func(answer any, queues []string) (bool, error) {
		for i, n := range asList(answer) {
			tell(queues[i], asInt(n))
		}
		return true, nil
	})
}
