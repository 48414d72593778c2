package sqlstore

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/belfryhq/belfry/store"
)

// defaultLimit is the length of a page that asks for none.
const defaultLimit = 100

// List returns a page. It reads the keys of what it skips and returns, by index, from each queue of the query; what
// else the query asks for is looked up in the rows on the way.
func (s *Store) List(ctx context.Context, query store.Query) (store.Page, error) {
	if query.Order > store.ByFinished {
		return store.Page{}, fmt.Errorf("list: there is no order %d", query.Order)
	}
	l := &listing{query: &query, order: sorter{query.Order, query.Desc}, filter: newFilter(&query)}
	l.seen = l.order.begin()
	if query.Cursor != "" {
		var err error
		if l.seen, err = l.order.parse(query.Cursor); err != nil {
			return store.Page{}, fmt.Errorf("list: %w", err)
		}
	}
	if err := s.read(ctx, "list", l.run); err != nil {
		return store.Page{}, err
	}
	return l.page()
}

// listing is a List under way.
type listing struct {
	*work
	query   *store.Query
	order   sorter
	filter  *filter
	seen    place // the page begins after it
	entries []entry
	more    bool
	records []*record
}

func (l *listing) limit() int {
	if l.query.Limit > 0 {
		return l.query.Limit
	}
	return defaultLimit
}

func (l *listing) skip() int {
	if l.query.Cursor != "" {
		return 0
	}
	return max(l.query.Offset, 0)
}

// run reads the page: first its keys, then its rows.
func (l *listing) run(w *work) error {
	l.work, l.entries, l.more, l.records = w, nil, false, nil
	read := l.merged
	if l.query.Parent != "" {
		read = l.sorted
	}
	if err := read(); err != nil {
		return err
	}
	return l.load()
}

// load reads the rows of the entries, the live and the finished ones together.
func (l *listing) load() error {
	l.records = make([]*record, len(l.entries))
	for _, live := range []bool{true, false} {
		var places []int
		for i := range l.entries {
			if l.entries[i].live == live {
				places = append(places, i)
			}
		}
		q, width := l.row(live)
		args := func(i int) []any { return []any{&l.entries[places[i]].n} }
		err := l.queryEach(q, len(places), args, func(i int, row Row) error {
			r := &record{}
			l.records[places[i]] = r
			return row.Scan(r.columns(width)...)
		})
		if err != nil {
			return err
		}
	}
	for i, r := range l.records {
		if r == nil {
			return fmt.Errorf("the row of message %q of queue %q is missing", l.entries[i].id, l.entries[i].queue)
		}
	}
	return nil
}

// row returns the query of a row and how many columns it has.
func (l *listing) row(live bool) (*Query, int) {
	switch {
	case live && l.query.Payloads:
		return l.q.liveRow, bareWidth + 1
	case live:
		return l.q.liveRowBare, bareWidth
	case l.query.Payloads:
		return l.q.finishedRow, bareWidth + 1
	default:
		return l.q.finishedRowBare, bareWidth
	}
}

// page returns what was read.
func (l *listing) page() (store.Page, error) {
	var page store.Page
	if l.more {
		page.Next = l.order.cursor(l.entries[len(l.entries)-1].place)
	}
	var err error
	page.Messages, err = messages(l.records)
	return page, err
}

// sorted reads the keys of all children of a parent, which are few, and sorts them.
func (l *listing) sorted() error {
	all, err := l.children(l.query, l.filter)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(e entry) bool { return l.order.compare(e.place, l.seen) <= 0 })
	slices.SortFunc(all, func(a, b entry) int { return l.order.compare(a.place, b.place) })
	all = all[min(l.skip(), len(all)):]
	l.more = len(all) > l.limit()
	l.entries = all[:min(l.limit(), len(all))]
	return nil
}

// children returns the children of the query's parent that match.
func (w *work) children(query *store.Query, f *filter) ([]entry, error) {
	var found []entry
	read := func(q *Query, states int64, live bool) error {
		return w.query(q, func(row Row) error {
			e := entry{live: live}
			var created, fire, finished int64
			if err := row.Scan(&created, &fire, &finished, &e.id, &e.queue, &e.n); err != nil {
				return err
			}
			e.key = [...]int64{store.ByCreated: created, store.ByFireAt: fire, store.ByFinished: finished}[query.Order]
			if query.Queue == e.queue || query.Queue == "" && strings.HasPrefix(e.queue, query.Prefix) {
				found = append(found, e)
			}
			return nil
		}, append([]any{query.Parent}, f.part(states).args()...)...)
	}
	if f.live() && query.Order != store.ByFinished {
		if err := read(w.q.liveChildren, liveStates, true); err != nil {
			return nil, err
		}
	}
	if f.finished() {
		if err := read(w.q.finishedChildren, finishedStates, false); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// merged reads the keys of a page from the streams of all queues.
func (l *listing) merged() error {
	streams, err := l.streams()
	if err != nil {
		return err
	}
	for _, s := range streams {
		s.chunk = int64((l.skip() + l.limit() + 1) / len(streams) / 2) // to begin with the stream's share of the page
	}
	m, err := l.newMerge(l.order, streams)
	if err != nil {
		return err
	}
	for skip := l.skip(); ; {
		e, ok, err := m.next(l.work)
		switch {
		case err != nil || !ok:
			return err
		case skip > 0:
			skip--
		case len(l.entries) == l.limit():
			l.more = true
			return nil
		default:
			l.entries = append(l.entries, e)
		}
	}
}

// streams returns what the page is read from.
func (l *listing) streams() ([]*stream, error) {
	var streams []*stream
	if l.filter.live() && l.query.Order != store.ByFinished {
		queues, err := l.queues(l.q.liveQueues, l.query)
		if err != nil {
			return nil, err
		}
		for _, queue := range queues {
			of, err := l.liveStreams(queue)
			if err != nil {
				return nil, err
			}
			streams = append(streams, of...)
		}
	}
	if !l.filter.finished() {
		return streams, nil
	}
	queues, err := l.queues(l.q.finishedQueues, l.query)
	for _, queue := range queues {
		streams = append(streams, l.finishedStream(queue))
	}
	return streams, err
}

// liveStreams returns the streams of a queue's live messages. See messages_leased in the SQLite dialect's tables for
// why there are several by fire_at.
func (l *listing) liveStreams(queue string) ([]*stream, error) {
	if l.query.Order == store.ByCreated {
		q := &l.q.liveCreated
		if l.filter.group != "" {
			q = &l.q.liveGroup
		}
		return []*stream{l.stream(q, true, liveStates, queue)}, nil
	}
	var streams []*stream
	if l.filter.states&(1<<store.Leased) != 0 {
		streams = append(streams, l.stream(&l.q.liveLeased, true, 1<<store.Leased, queue))
	}
	if l.filter.states&(1<<store.Scheduled) == 0 {
		return streams, nil
	}
	streams = append(streams, l.stream(&l.q.liveMoved, true, 1<<store.Scheduled, queue))
	err := l.work.query(l.q.priorities, func(row Row) error {
		var priority int64
		err := row.Scan(&priority)
		streams = append(streams, l.stream(&l.q.liveWaiting, true, 1<<store.Scheduled, queue, priority))
		return err
	}, queue)
	return streams, err
}

func (l *listing) finishedStream(queue string) *stream {
	q := &l.q.finishedCreated
	switch {
	case l.query.Order == store.ByFireAt:
		q = &l.q.finishedFire
	case l.query.Order == store.ByFinished:
		q = &l.q.finishedFinished
	case l.filter.group != "":
		q = &l.q.finishedGroup
	}
	return l.stream(q, false, finishedStates, queue)
}

// stream returns a stream of the list's direction and bounds. All its rows have one of the states.
func (l *listing) stream(q *[2]*Query, live bool, states int64, queue string, more ...any) *stream {
	s := &stream{
		query: q[bit(l.order.desc)], lead: append([]any{queue}, more...), filter: l.filter.part(states), queue: queue, live: live,
		seen: l.seen, start: l.seen, end: l.order.end(),
	}
	if l.query.Order != store.ByFireAt || l.filter.fired == 0 {
		return s
	}
	near, far := l.filter.fireMin, l.filter.fireMax
	if l.order.desc {
		near, far = far, near
	}
	s.end = far
	if near := (place{key: near}); l.order.compare(near, s.start) > 0 {
		s.start = near
		if l.order.desc && near.key < math.MaxInt64 {
			s.start.key++ // to include the key itself, whatever the id
		}
	}
	return s
}
