package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/belfryhq/belfry/store"
	"github.com/belfryhq/belfry/store/memstore"
)

// broken is a store with one defect. Its methods are those of the store unless a function takes their place.
type broken struct {
	store.Store
	put    func(s store.Store, ms []store.Message)
	claim  func(c *store.Claim)
	told   func(c *store.Claimed)
	settle func(s store.Store, ss []store.Settlement)
	held   func(h []store.Held)
	change func(cs []store.Change)
	list   func(q *store.Query)
	purge  func(limit int) int
}

func (b broken) Put(ctx context.Context, now time.Time, ms []store.Message, mode store.PutMode) ([]store.PutResult, error) {
	if b.put != nil {
		ms = append([]store.Message(nil), ms...)
		b.put(b.Store, ms)
	}
	return b.Store.Put(ctx, now, ms, mode)
}

func (b broken) Claim(ctx context.Context, c store.Claim) (store.Claimed, error) {
	if b.claim != nil {
		b.claim(&c)
	}
	got, err := b.Store.Claim(ctx, c)
	if b.told != nil {
		b.told(&got)
	}
	return got, err
}

func (b broken) Settle(ctx context.Context, now time.Time, ss []store.Settlement) ([]error, error) {
	if b.settle != nil {
		ss = append([]store.Settlement(nil), ss...)
		b.settle(b.Store, ss)
	}
	return b.Store.Settle(ctx, now, ss)
}

func (b broken) Extend(ctx context.Context, now time.Time, tokens []store.Token, until time.Time) ([]store.Held, error) {
	held, err := b.Store.Extend(ctx, now, tokens, until)
	if b.held != nil {
		b.held(held)
	}
	return held, err
}

func (b broken) Replace(ctx context.Context, now time.Time, cs []store.Change) ([]error, error) {
	if b.change != nil {
		cs = append([]store.Change(nil), cs...)
		b.change(cs)
	}
	return b.Store.Replace(ctx, now, cs)
}

func (b broken) List(ctx context.Context, q store.Query) (store.Page, error) {
	if b.list != nil {
		b.list(&q)
	}
	return b.Store.List(ctx, q)
}

func (b broken) Purge(ctx context.Context, now time.Time, limit int) (int, error) {
	if b.purge != nil {
		limit = b.purge(limit)
	}
	return b.Store.Purge(ctx, now, limit)
}

// defects are what the model must find. Each concerns one rule and is seldom seen.
var defects = map[string]broken{
	"a closed gate waits for the first of its ids alone": {put: func(_ store.Store, ms []store.Message) {
		for i := range ms {
			if g := ms[i].Gate; g != nil && len(g.IDs) > 1 {
				ms[i].Gate = &store.Gate{IDs: g.IDs[:1], Group: g.Group}
			}
		}
	}},
	"a finished message gives its dedup key up": {put: func(_ store.Store, ms []store.Message) {
		for i := range ms {
			if ms[i].State.Finished() {
				ms[i].DedupUntil = time.Time{}
			}
		}
	}},
	"a claim is early by a millisecond":     {claim: func(c *store.Claim) { c.Now = c.Now.Add(time.Millisecond) }},
	"a claim forgets its concurrency":       {claim: func(c *store.Claim) { c.Queues = withoutConcurrency(c.Queues) }},
	"a claim is slow to tell what is next":  {told: func(c *store.Claimed) { later(c.Queues, time.Millisecond) }},
	"a stale token settles":                 {settle: settleStale},
	"a follow-up forgets its gate":          {settle: openFollowUps},
	"an extension does not tell to stop":    {held: forgetStop},
	"a change is made under a live lease":   {change: revoke},
	"a list by the last instant leaves out": {list: func(q *store.Query) { shorten(q) }},
	"a purge takes one more than is asked":  {purge: func(limit int) int { return limit + 1 }},
}

func withoutConcurrency(qs []store.QueueClaim) []store.QueueClaim {
	qs = append([]store.QueueClaim(nil), qs...)
	for i := range qs {
		qs[i].Concurrency = 0
	}
	return qs
}

func later(queues []store.QueueNext, d time.Duration) {
	for i := range queues {
		if !queues[i].Next.Equal(store.Never) {
			queues[i].Next = queues[i].Next.Add(d)
		}
	}
}

func settleStale(s store.Store, ss []store.Settlement) {
	for i := range ss {
		t := &ss[i].Token
		if m, err := s.Get(context.Background(), store.Key{Queue: t.Queue, ID: t.ID}); err == nil {
			t.Version = m.Version
		}
	}
}

func openFollowUps(_ store.Store, ss []store.Settlement) {
	for i := range ss {
		ss[i].FollowUps = append([]store.Message(nil), ss[i].FollowUps...)
		for j := range ss[i].FollowUps {
			ss[i].FollowUps[j].Gate = nil
		}
	}
}

func forgetStop(held []store.Held) {
	for i := range held {
		held[i] = min(held[i], store.Extended)
	}
}

func revoke(cs []store.Change) {
	for i := range cs {
		if cs[i].Mode == store.Swap {
			cs[i].Mode = store.Revoke
		}
	}
}

func shorten(q *store.Query) {
	if !q.FireMax.IsZero() {
		q.FireMax = q.FireMax.Add(-time.Millisecond)
	}
}

func TestModelFindsDefectsAndShrinksThem(t *testing.T) {
	for name, defect := range defects {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			player := &modelPlayer{t: t, patience: time.Hour, open: func(testing.TB) store.Store {
				b := defect
				b.Store = memstore.New()
				return b
			}}
			ops := newModelGen(1, Options{}).program(5000)
			at, why := player.play(ops)
			if why == "" {
				t.Fatalf("%d operations did not find it", len(ops))
			}
			short, why := player.shrink(ops[:min(at+1, len(ops))], why)
			t.Logf("found at step %d: %s\n%s", at+1, why, modelProgram(short))
			if len(short) > 6 {
				t.Errorf("shrunk to %d operations, want 6 at most", len(short))
			}
			if _, again := player.play(short); again != why {
				t.Errorf("played again it fails with %q, then %q", why, again)
			}
		})
	}
}

func TestModelFindsNothingInAStoreThatKeepsTheContract(t *testing.T) {
	player := &modelPlayer{t: t, open: func(testing.TB) store.Store { return memstore.New() }}
	for seed := range uint64(5) {
		if at, why := player.play(newModelGen(seed, Options{}).program(1000)); why != "" {
			t.Errorf("seed %d, step %d: %s", seed, at+1, why)
		}
	}
}

func TestModelProgramIsTheSameForASeed(t *testing.T) {
	a, b := newModelGen(7, Options{}).program(500), newModelGen(7, Options{}).program(500)
	if modelProgram(a) != modelProgram(b) {
		t.Error("one seed gave two programs")
	}
	if modelProgram(a) == modelProgram(newModelGen(8, Options{}).program(500)) {
		t.Error("two seeds gave one program")
	}
}
