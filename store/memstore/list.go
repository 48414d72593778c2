package memstore

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/belfryhq/belfry/store"
)

// defaultLimit is the length of a page that asks for none.
const defaultLimit = 100

// List returns a page. It looks at every message of the queues it is asked about.
func (s *Store) List(ctx context.Context, query store.Query) (store.Page, error) {
	from, err := parseCursor(query.Cursor, &query)
	if err != nil {
		return store.Page{}, err
	}
	if err := s.enter(ctx); err != nil {
		return store.Page{}, err
	}
	defer s.mu.Unlock()
	order := sorter{query.Order, query.Desc}
	var found []place
	s.scan(&query, func(r *record) {
		if p := order.place(r); query.Cursor == "" || order.compare(p, from) > 0 {
			found = append(found, p)
		}
	})
	slices.SortFunc(found, order.compare)
	if query.Cursor == "" {
		found = found[min(max(query.Offset, 0), len(found)):]
	}
	limit := query.Limit
	if limit <= 0 {
		limit = defaultLimit
	}
	return pageOf(found, limit, &query), nil
}

// pageOf returns the first of what was found as a page.
func pageOf(found []place, limit int, query *store.Query) store.Page {
	var page store.Page
	if len(found) > limit {
		found = found[:limit]
		page.Next = found[limit-1].cursor(query)
	}
	for _, p := range found {
		if query.Payloads {
			page.Messages = append(page.Messages, p.r.full())
		} else {
			page.Messages = append(page.Messages, p.r.message())
		}
	}
	return page
}

// Count returns how many messages match.
func (s *Store) Count(ctx context.Context, query store.Query) (int64, error) {
	if err := s.enter(ctx); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	query.Order = store.ByCreated // ByFinished would select
	var n int64
	s.scan(&query, func(*record) { n++ })
	return n, nil
}

// scan visits every message that the query selects, in no order.
func (s *Store) scan(query *store.Query, visit func(*record)) {
	f := newFilter(query)
	s.selected(query, func(q *queue) {
		for _, r := range q.ids {
			if f.admits(r) {
				visit(r)
			}
		}
	})
}

// selected visits the queues that the query asks about.
func (s *Store) selected(query *store.Query, visit func(*queue)) {
	if query.Queue != "" {
		if q := s.queues[query.Queue]; q != nil {
			visit(q)
		}
		return
	}
	s.names.Ascend(&queue{name: query.Prefix}, func(q *queue) bool {
		if !strings.HasPrefix(q.name, query.Prefix) {
			return false
		}
		visit(q)
		return true
	})
}

// filter is the conditions of a query on a message.
type filter struct {
	states           [store.Canceled + 1]bool
	kind             string
	parent           string
	group            string
	fireMin, fireMax instant
}

func newFilter(query *store.Query) *filter {
	f := &filter{kind: query.Kind, parent: query.Parent, group: query.Group, fireMin: at(query.FireMin), fireMax: never}
	if !query.FireMax.IsZero() {
		f.fireMax = floor(query.FireMax)
	}
	for s := store.Scheduled; s <= store.Canceled; s++ {
		asked := len(query.States) == 0 || slices.Contains(query.States, s)
		f.states[s] = asked && (query.Order != store.ByFinished || s.Finished())
	}
	return f
}

func (f *filter) admits(r *record) bool {
	if !f.states[r.state] || r.fireAt < f.fireMin || r.fireAt > f.fireMax {
		return false
	}
	if f.kind != "" && r.shape.kind != f.kind {
		return false
	}
	if f.parent == "" && f.group == "" {
		return true
	}
	x := r.extra()
	return (f.parent == "" || x.parent == f.parent) && (f.group == "" || x.group == f.group)
}

// place is where a message stands in a list.
type place struct {
	key   instant
	id    string
	queue string
	r     *record
}

// sorter is the order of a list.
type sorter struct {
	by   store.Order
	desc bool
}

func (o sorter) place(r *record) place {
	p := place{key: r.createdAt, id: r.id, queue: r.queue.name, r: r}
	switch o.by {
	case store.ByFireAt:
		p.key = r.fireAt
	case store.ByFinished:
		p.key = r.extra().finishedAt
	}
	return p
}

func (o sorter) compare(a, b place) int {
	c := cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.id, b.id), cmp.Compare(a.queue, b.queue))
	if o.desc {
		return -c
	}
	return c
}
