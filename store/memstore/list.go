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
	limit, offset := query.Limit, max(query.Offset, 0)
	if limit <= 0 {
		limit = defaultLimit
	}
	if query.Cursor != "" {
		offset = 0
	}
	order := sorter{query.Order, query.Desc}
	first := smallest{order: order, n: min(offset, maxKept) + min(limit, maxKept) + 1}
	f := newFilter(&query)
	err = s.scan(ctx, &query, f, func(r *record) {
		if p := order.place(r); query.Cursor == "" || order.compare(p, from) > 0 {
			first.add(p)
		}
	})
	if err != nil {
		return store.Page{}, err
	}
	found := first.sorted()
	found = found[min(offset, len(found)):]
	var page store.Page
	if len(found) > limit {
		found = found[:limit]
		page.Next = found[limit-1].cursor(&query)
	}
	for _, p := range found {
		if r := p.r; r.queue.ids[r.id] == r && f.admits(r) && order.place(r) == p {
			page.Messages = append(page.Messages, r.listed(query.Payloads))
		}
	}
	return page, nil
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
