package redisstore

import (
	"container/heap"
	"context"
	"fmt"
	"slices"

	"github.com/belfryhq/belfry/store"
)

const (
	defaultLimit = 100     // the length of a page that asks for none
	maxKept      = 1 << 40 // more than any list keeps; it bounds sums of what callers ask for
)

// List returns a page: the places of its messages from the queues' indexes, merged, then the messages themselves. One that
// has changed in between is missing from the page; Next tells whether there is more all the same.
func (s *Store) List(ctx context.Context, query store.Query) (store.Page, error) {
	o := sorter{query.Order, query.Desc}
	var after *place
	if query.Cursor != "" {
		from, err := o.parse(query.Cursor)
		if err != nil {
			return store.Page{}, err
		}
		after, query.Offset = &from, 0
	}
	if err := s.enter(ctx); err != nil {
		return store.Page{}, err
	}
	defer s.exit()
	page, err := s.list(ctx, &query, o, after)
	if err != nil {
		return store.Page{}, fmt.Errorf("list: %w", err)
	}
	return page, nil
}

func (s *Store) list(ctx context.Context, query *store.Query, o sorter, after *place) (store.Page, error) {
	limit, offset := query.Limit, max(query.Offset, 0)
	if limit <= 0 {
		limit = defaultLimit
	}
	f := newFilter(query, false)
	if f.states == "" {
		return store.Page{}, nil
	}
	names, err := s.selected(ctx, query, &f)
	if err != nil {
		return store.Page{}, err
	}
	m := merging{s: s, order: o, filter: &f}
	found, err := m.first(ctx, names, after, min(offset, maxKept)+min(limit, maxKept)+1)
	if err != nil {
		return store.Page{}, err
	}
	var page store.Page
	found = found[min(offset, len(found)):]
	if len(found) > limit {
		found = found[:limit]
		page.Next = o.cursor(found[limit-1])
	}
	page.Messages, err = s.fetch(ctx, found, query.Payloads, o, &f)
	return page, err
}

// merging merges the streams of queues.
type merging struct {
	s       *Store
	order   sorter
	filter  *filter
	streams []*stream
}

// first returns the first n places of all queues.
func (m *merging) first(ctx context.Context, names []string, after *place, n int) ([]place, error) {
	each := min(n, 500)
	if len(names) > 4 {
		each = min(each, 4+2*n/len(names))
	}
	var ready []*stream
	for some := range slices.Chunk(names, namesPage) {
		streams := make([]*stream, len(some))
		for i, name := range some {
			streams[i] = m.order.newStream(name, after)
		}
		if err := m.s.readAll(ctx, streams, m.order, m.filter, each); err != nil {
			return nil, err
		}
		ready = append(ready, streams...)
	}
	for _, st := range ready {
		if err := m.push(ctx, st, each); err != nil {
			return nil, err
		}
	}
	var found []place
	for len(found) < n && len(m.streams) > 0 {
		st := heap.Pop(m).(*stream)
		found = append(found, st.rows[0])
		st.rows = st.rows[1:]
		if err := m.push(ctx, st, min(n-len(found)+1, 500)); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// push puts a stream back among the others, unless it is at its end.
func (m *merging) push(ctx context.Context, st *stream, want int) error {
	for len(st.rows) == 0 && !st.done {
		if err := m.s.readAll(ctx, []*stream{st}, m.order, m.filter, want); err != nil {
			return err
		}
	}
	if len(st.rows) > 0 {
		heap.Push(m, st)
	}
	return nil
}

// merging is a heap of streams by their first rows.

func (m *merging) Len() int { return len(m.streams) }
func (m *merging) Less(i, j int) bool {
	return m.order.compare(m.streams[i].rows[0], m.streams[j].rows[0]) < 0
}
func (m *merging) Swap(i, j int) { m.streams[i], m.streams[j] = m.streams[j], m.streams[i] }
func (m *merging) Push(x any)    { m.streams = append(m.streams, x.(*stream)) }
func (m *merging) Pop() any {
	last := m.streams[len(m.streams)-1]
	m.streams = m.streams[:len(m.streams)-1]
	return last
}
