package storetest

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/belfryhq/belfry/store"
)

// modelPurge is a Purge.
type modelPurge struct {
	now   modelNow
	limit int
}

func (op *modelPurge) play(r *modelRun) {
	now := op.now.floor()
	over := r.m.keys(func(e *modelEntry) bool { return (e.trace || e.m.State.Finished()) && !e.m.PurgeAt.After(now) })
	slices.SortStableFunc(over, func(a, b store.Key) int { return r.m.held[a].m.PurgeAt.Compare(r.m.held[b].m.PurgeAt) })
	limit := op.limit
	for limit > 0 && limit < len(over) && r.m.held[over[limit]].m.PurgeAt.Equal(r.m.held[over[limit-1]].m.PurgeAt) {
		limit++ // which of those that are over at one instant go first is left to the store
	}
	want := over[:min(limit, len(over))]
	got, err := r.s.Purge(r.t.Context(), op.now.time(), limit)
	r.must("Purge", err, got, len(want))
	for _, key := range want {
		delete(r.m.held, key)
	}
	for _, key := range over {
		r.m.touch(key)
	}
}

// modelList is a List, page by page to the end, or a Count of the same.
type modelList struct{ query store.Query }

func (op *modelList) play(r *modelRun) {
	q := op.query
	want := r.m.list(&q)
	n, err := r.s.Count(r.t.Context(), q)
	unordered := q
	unordered.Order = store.ByCreated
	if all := r.m.list(&unordered); err != nil || n != int64(len(all)) {
		r.fail("Count gave %d and %v, want %d", n, err, len(all))
	}
	want = want[min(q.Offset, len(want)):]
	limit := q.Limit
	if limit == 0 {
		limit = 100
	}
	for {
		page, err := r.s.List(r.t.Context(), q)
		if err != nil {
			r.fail("List: %v", err)
		}
		r.sameList(page.Messages, want[:min(limit, len(want))], q.Payloads)
		want = want[len(page.Messages):]
		if (page.Next == "") != (len(want) == 0) {
			r.fail("List says that the next page is at %q, and %d messages are left", page.Next, len(want))
		}
		if page.Next == "" {
			return
		}
		q.Cursor = page.Next
	}
}

// list returns what a query selects, in its order, offset and limit apart.
func (m *model) list(q *store.Query) []*modelEntry {
	var found []*modelEntry
	for _, key := range m.keys(func(e *modelEntry) bool { return !e.trace && modelSelects(q, &e.m) }) {
		found = append(found, m.held[key])
	}
	slices.SortFunc(found, func(a, b *modelEntry) int {
		c := a.m.CreatedAt.Compare(b.m.CreatedAt)
		switch q.Order {
		case store.ByFireAt:
			c = a.m.FireAt.Compare(b.m.FireAt)
		case store.ByFinished:
			c = a.m.FinishedAt.Compare(b.m.FinishedAt)
		}
		c = cmp.Or(c, strings.Compare(a.m.ID, b.m.ID), strings.Compare(a.m.Queue, b.m.Queue))
		if q.Desc {
			return -c
		}
		return c
	})
	return found
}

func modelSelects(q *store.Query, m *store.Message) bool {
	in := strings.HasPrefix(m.Queue, q.Prefix)
	if q.Queue != "" {
		in = m.Queue == q.Queue
	}
	return in && (len(q.States) == 0 || slices.Contains(q.States, m.State)) &&
		(q.Kind == "" || m.Kind == q.Kind) && (q.Parent == "" || m.Parent == q.Parent) && (q.Group == "" || m.Group == q.Group) &&
		!m.FireAt.Before(q.FireMin) && (q.FireMax.IsZero() || !m.FireAt.After(q.FireMax)) &&
		(q.Order != store.ByFinished || m.State.Finished())
}

// modelQueues is a Queues.
type modelQueues struct{ window store.Window }

func (op *modelQueues) play(r *modelRun) {
	w := op.window
	earliest := map[string]time.Time{}
	for _, e := range r.m.held {
		at, seen := earliest[e.m.Queue]
		in := !e.m.VisibleAt.Before(w.Min) && (w.Max.IsZero() || !e.m.VisibleAt.After(w.Max))
		if !e.trace && e.m.State.Live() && in && (!seen || e.m.VisibleAt.Before(at)) {
			earliest[e.m.Queue] = e.m.VisibleAt
		}
	}
	var want []store.QueueHint
	for _, queue := range slices.Sorted(maps.Keys(earliest)) {
		if strings.HasPrefix(queue, w.Prefix) && queue > w.After && (w.Limit == 0 || len(want) < w.Limit) {
			want = append(want, store.QueueHint{Queue: queue, At: earliest[queue]})
		}
	}
	got, err := r.s.Queues(r.t.Context(), w)
	if err != nil {
		r.fail("Queues: %v", err)
	}
	// A queue in which nothing but closed gates waits may be named or not.
	shut := func(h store.QueueHint) bool { return h.At.Equal(store.Never) }
	got, want = slices.DeleteFunc(got, shut), slices.DeleteFunc(want, shut)
	if !slices.EqualFunc(got, want, func(a, b store.QueueHint) bool { return a.Queue == b.Queue && a.At.Equal(b.At) }) {
		r.fail("Queues gave %s, want %s", brief(got), brief(want))
	}
}

// modelAudit compares all contents.
type modelAudit struct{}

func (modelAudit) play(r *modelRun) { r.audit() }

// modelReopen closes the store and opens it again. A store that one process has for itself may then forfeit all leases,
// since nobody can hold one any more.
type modelReopen struct{}

func (modelReopen) play(r *modelRun) {
	r.s = r.o.Reopen(r.t, r.s)
	for _, key := range r.m.keys(func(e *modelEntry) bool { return e.m.State == store.Leased }) {
		got, err := r.s.Get(r.t.Context(), key)
		if e := r.m.held[key]; err == nil && got.State == store.Scheduled {
			e.unlease(store.Scheduled)
			e.m.VisibleAt = e.m.DueAt
			r.m.wrote(e, got.UpdatedAt)
		}
	}
	r.audit()
}
