package memstore

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/tidwall/btree"

	"github.com/belfryhq/belfry/store"
	"github.com/belfryhq/belfry/store/storetest"
)

// checked is a Store whose indexes are compared with its messages after every write.
type checked struct {
	*Store
	t testing.TB
}

func (c checked) Put(ctx context.Context, now time.Time, ms []store.Message, mode store.PutMode) ([]store.PutResult, error) {
	defer c.check()
	return c.Store.Put(ctx, now, ms, mode)
}

func (c checked) Claim(ctx context.Context, claim store.Claim) (store.Claimed, error) {
	defer c.check()
	return c.Store.Claim(ctx, claim)
}

func (c checked) Settle(ctx context.Context, now time.Time, ss []store.Settlement) ([]error, error) {
	defer c.check()
	return c.Store.Settle(ctx, now, ss)
}

func (c checked) Extend(ctx context.Context, now time.Time, tokens []store.Token, until time.Time) ([]store.Held, error) {
	defer c.check()
	return c.Store.Extend(ctx, now, tokens, until)
}

func (c checked) Replace(ctx context.Context, now time.Time, changes []store.Change) ([]error, error) {
	defer c.check()
	return c.Store.Replace(ctx, now, changes)
}

func (c checked) Forfeit(ctx context.Context, now time.Time, owner string, epoch int64) (int, error) {
	defer c.check()
	return c.Store.Forfeit(ctx, now, owner, epoch)
}

func (c checked) Purge(ctx context.Context, now time.Time, limit int) (int, error) {
	defer c.check()
	return c.Store.Purge(ctx, now, limit)
}

func (c checked) check() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.invariants(); err != nil {
		c.t.Error(err)
	}
}

// invariants says which index differs from what the messages say.
func (s *Store) invariants() error {
	over := 0
	if s.names.Len() != len(s.queues) {
		return fmt.Errorf("%d names of %d queues", s.names.Len(), len(s.queues))
	}
	for name, q := range s.queues {
		n, err := s.queueInvariants(q)
		if err != nil {
			return fmt.Errorf("queue %q: %w", name, err)
		}
		over += n
	}
	if s.purge.Len() != over {
		return fmt.Errorf("%d records wait for Purge, want %d", s.purge.Len(), over)
	}
	return nil
}

// queueInvariants returns how many records of the queue must be in the purge index.
func (s *Store) queueInvariants(q *queue) (over int, err error) {
	if len(q.ids) == 0 && q.arrival == noArrival {
		return 0, fmt.Errorf("it holds nothing")
	}
	var live, leased, keys, groups, waits int
	var counts [store.Canceled + 1]int
	for id, r := range q.ids {
		x := r.extra()
		counts[r.state]++
		switch {
		case r.queue != q || r.id != id:
			return 0, fmt.Errorf("%q stands under %q", r.id, id)
		case r.state.Live():
			live++
			if i, found := q.searchLane(r.priority); !found || !has(q.lanes[i], r) {
				return 0, fmt.Errorf("%q is not in its lane", id)
			}
		case x.purgeAt != never:
			over++
			if _, found := s.purge.Get(r); !found {
				return 0, fmt.Errorf("%q is not in the purge index", id)
			}
		}
		if r.state == store.Leased {
			leased++
			if q.leased[r.leasedAt] != r || r.holder == nil {
				return 0, fmt.Errorf("%q is not among the leased", id)
			}
		} else if r.holder != nil || r.stop {
			return 0, fmt.Errorf("%q has a holder and is %v", id, r.state)
		}
		if x.dedupKey != "" && (r.state.Live() || x.dedupUntil != unset) {
			keys++
		}
		if x.group != "" && r.state.Live() {
			groups++
		}
		if x.waits > 0 != (r.state.Live() && r.visibleAt == never) && r.dueAt != never {
			return 0, fmt.Errorf("%q waits for %d and is visible at %d", id, x.waits, r.visibleAt)
		}
		waits += x.waits
	}
	return over, errorUnless(
		same{"messages in lanes", q.laneLen(), live}, same{"leased", len(q.leased), leased},
		same{"dedup keys", treeLen(q.keys), keys}, same{"groups", treeLen(q.groups), groups},
		same{"waits", q.waiting(), waits}, same{"counts", counts, q.counts},
	)
}

type same struct {
	what      string
	got, want any
}

func errorUnless(pairs ...same) error {
	for _, p := range pairs {
		if p.got != p.want {
			return fmt.Errorf("%s: %v, want %v", p.what, p.got, p.want)
		}
	}
	return nil
}

func has(l *lane, r *record) bool {
	found, ok := l.tree.Get(slot{r.visibleAt, r})
	return ok && found.r == r
}

func treeLen(tree *btree.BTreeG[*record]) int {
	if tree == nil {
		return 0
	}
	return tree.Len()
}

func (q *queue) laneLen() int {
	n := 0
	for _, l := range q.lanes {
		n += l.tree.Len()
	}
	return n
}

// waiting counts who waits for whom, the departed left out.
func (q *queue) waiting() int {
	n := 0
	for id, waiting := range q.gates {
		for _, r := range waiting {
			if q.ids[r.id] == r && slices.Contains(r.rare.gate, id) {
				n++
			}
		}
	}
	return n
}

func TestIndexesAgreeWithTheMessages(t *testing.T) {
	storetest.RunModel(t, func(t testing.TB) store.Store { return checked{New(), t} }, storetest.Options{})
}

func TestEmptyQueuesAreForgotten(t *testing.T) {
	s, now := New(), time.UnixMilli(1_800_000_000_000)
	for i := range 5000 {
		m := store.Message{Queue: fmt.Sprint(i % 2500), ID: fmt.Sprint(i), FireAt: now}
		if _, err := s.Put(t.Context(), now, []store.Message{m}, 0); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 2500 {
		claimed, err := s.Claim(t.Context(), store.Claim{
			Now: now, Until: now.Add(time.Minute), Queues: []store.QueueClaim{{Queue: fmt.Sprint(i), Limit: 9}},
		})
		if err != nil || len(claimed.Messages) != 2 {
			t.Fatalf("claimed %d messages: %v", len(claimed.Messages), err)
		}
		for _, m := range claimed.Messages {
			if _, err := s.Settle(t.Context(), now, []store.Settlement{{Token: m.Token(), Outcome: store.OutcomeDone}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(s.queues) != 0 || s.names.Len() != 0 {
		t.Errorf("%d queues and %d names are left of empty ones", len(s.queues), s.names.Len())
	}
}

func TestAQueueThatShrankGivesItsMemoryBack(t *testing.T) {
	s, now := New(), time.UnixMilli(1_800_000_000_000)
	const n = 20 * minPeak
	for i := range n {
		m := store.Message{Queue: "q", ID: fmt.Sprint(i), FireAt: now, State: store.Done, PurgeAt: now}
		if i < 10 {
			m.PurgeAt = store.Never
		}
		if _, err := s.Put(t.Context(), now, []store.Message{m}, 0); err != nil {
			t.Fatal(err)
		}
	}
	if purged, err := s.Purge(t.Context(), now, n); err != nil || purged != n-10 {
		t.Fatalf("purged %d: %v", purged, err)
	}
	q := s.queues["q"]
	if q.peak >= minPeak {
		t.Errorf("the map of ids is still made for %d ids, it holds %d", q.peak, len(q.ids))
	}
	if err := s.invariants(); err != nil || len(q.ids) != 10 {
		t.Errorf("%d messages are left, want 10 (%v)", len(q.ids), err)
	}
}

func TestMessagesOfOneKindShareTheirShape(t *testing.T) {
	s, now := New(), time.UnixMilli(1_800_000_000_000)
	put := func(id, kind string) {
		m := store.Message{
			Queue: "q", ID: id, Kind: kind, Params: map[string]string{"method": "PUT"},
			Retry: store.Retry{Backoff: store.List, Delays: []time.Duration{1, 2}}, FireAt: now,
		}
		if _, err := s.Put(t.Context(), now, []store.Message{m}, 0); err != nil {
			t.Fatal(err)
		}
	}
	put("a1", "a")
	put("b", "b")
	put("a2", "a")
	ids := s.queues["q"].ids
	if ids["a1"].shape != ids["a2"].shape {
		t.Error("two messages that have all in common keep it twice")
	}
	if ids["a1"].shape == ids["b"].shape {
		t.Error("two kinds share a shape")
	}
}

func TestARecordIsSmall(t *testing.T) {
	if size := unsafe.Sizeof(record{}); size > 192 {
		t.Errorf("a waiting message takes %d bytes beside its own text, want 192 at most", size)
	}
}
