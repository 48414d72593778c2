package memstore

import (
	"context"

	"github.com/belfryhq/belfry/store"
)

// defaultLimit is the length of a page that asks for none.
const defaultLimit = 100

// List returns a page. It looks at every message of the queues it is asked about, a stretch at a time, and keeps no
// more than the page and what its offset skips. A message that changes meanwhile may be missing from the page; Next
// tells whether there is more all the same.
func (s *Store) List(ctx context.Context, query store.Query) (store.Page, error) {
	from, err := parseCursor(query.Cursor, &query)
	if err != nil {
		return store.Page{}, err
	}
	if err := s.enter(ctx); err != nil {
		return store.Page{}, err
	}
	defer s.mu.Unlock()
	if query.Limit <= 0 {
		query.Limit = defaultLimit
	}
	if query.Offset = max(query.Offset, 0); query.Cursor != "" {
		query.Offset = 0
	}
	l := lister{query: &query, filter: newFilter(&query), order: sorter{query.Order, query.Desc}}
	first := smallest{order: l.order, n: min(query.Offset, maxKept) + min(query.Limit, maxKept) + 1}
	err = s.scan(ctx, &query, l.filter, func(r *record) {
		if p := l.order.place(r); query.Cursor == "" || l.order.compare(p, from) > 0 {
			first.add(p)
		}
	})
	if err != nil {
		return store.Page{}, err
	}
	return l.page(first.sorted()), nil
}

// lister is one List under way.
type lister struct {
	query  *store.Query
	filter *filter
	order  sorter
}

// page makes a page of what was found first, the offset included, and one more if there is more.
func (l *lister) page(found []place) store.Page {
	var page store.Page
	found = found[min(l.query.Offset, len(found)):]
	if limit := l.query.Limit; len(found) > limit {
		found = found[:limit]
		page.Next = found[limit-1].cursor(l.query)
	}
	page.Messages = make([]store.Message, 0, len(found))
	for _, p := range found {
		if l.stands(p) {
			page.Messages = append(page.Messages, p.r.listed(l.query.Payloads))
		}
	}
	return page
}

// stands reports whether what was found is still there, in the same place; it may have changed while the scan paused.
func (l *lister) stands(p place) bool {
	r := p.r
	return r.queue.ids[r.id] == r && l.filter.admits(r) && l.order.place(r) == p
}

// listed returns the message as a list shows it.
func (r *record) listed(payload bool) store.Message {
	if payload {
		return r.full()
	}
	return r.message()
}

// Count returns how many messages match. It looks at no message unless the query asks for more than queue and state.
func (s *Store) Count(ctx context.Context, query store.Query) (int64, error) {
	query.Order = store.ByCreated // ByFinished would select
	if err := s.enter(ctx); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	f := newFilter(&query)
	var n int64
	if f.byStateAlone() {
		for _, q := range s.selected(&query) {
			n += int64(f.countStates(q))
		}
		return n, nil
	}
	err := s.scan(ctx, &query, f, func(*record) { n++ })
	return n, err
}
