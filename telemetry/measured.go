package telemetry

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/belfryhq/belfry/store"
)

// measured is a store whose calls are measured.
type measured struct {
	store.Store
	calls *calls
	docs  measuredDocs
	skew  skew
}

func newMeasured(s store.Store, c *calls) *measured {
	return &measured{Store: s, calls: c, docs: measuredDocs{inner: s.Docs(), calls: c}}
}

// Unwrap returns the store that is measured, so that store.Power finds what else it can do.
func (s *measured) Unwrap() store.Store { return s.Store }

// Put measures the call and counts the answers.
func (s *measured) Put(ctx context.Context, now time.Time, messages []store.Message, mode store.PutMode) ([]store.PutResult, error) {
	start := time.Now()
	results, err := s.Store.Put(ctx, now, messages, mode)
	s.calls.byOp[opPut].doneMany(ctx, start, len(messages), err)
	var counts [maxResults]int
	for i := range results {
		counts[s.calls.putBy.place(results[i].Err)]++
	}
	s.calls.putBy.add(&counts)
	return results, err
}

// Claim measures the call, counts the messages and compares the clocks.
func (s *measured) Claim(ctx context.Context, claim store.Claim) (store.Claimed, error) {
	start := time.Now()
	claimed, err := s.Store.Claim(ctx, claim)
	s.calls.byOp[opClaim].doneMany(ctx, start, len(claimed.Messages), err)
	s.calls.claimed.Add(float64(len(claimed.Messages)))
	if err == nil && !claimed.StoreNow.IsZero() {
		s.skew.observe(claimed.StoreNow, start, time.Since(start))
	}
	return claimed, err
}

// Settle measures the call and counts outcomes.
func (s *measured) Settle(ctx context.Context, now time.Time, settlements []store.Settlement) ([]error, error) {
	start := time.Now()
	results, err := s.Store.Settle(ctx, now, settlements)
	s.calls.byOp[opSettle].doneMany(ctx, start, len(settlements), err)
	var refused [maxResults]int
	for i, refusal := range results {
		refused[s.calls.refusedBy.place(refusal)]++
		if refusal != nil {
			continue
		}
		s.calls.settledBy[settlements[i].Outcome].Inc()
		if n := len(settlements[i].FollowUps); n > 0 {
			s.calls.followUps.Add(float64(n))
		}
	}
	s.calls.refusedBy.add(&refused)
	return results, err
}

// Extend measures the call and counts what was extended and what was lost. A call that only asks is an op of its own.
func (s *measured) Extend(ctx context.Context, now time.Time, tokens []store.Token, until time.Time) ([]store.Held, error) {
	asks, o := until.IsZero(), opExtend
	if asks {
		o = opAsk
	}
	start := time.Now()
	held, err := s.Store.Extend(ctx, now, tokens, until)
	s.calls.byOp[o].doneMany(ctx, start, len(tokens), err)
	lost := 0
	for _, h := range held {
		if h == store.Lost {
			lost++
		}
	}
	s.calls.unheld.Add(float64(lost))
	if !asks {
		s.calls.held.Add(float64(len(held) - lost))
	}
	return held, err
}

// Replace measures the call and counts the answers.
func (s *measured) Replace(ctx context.Context, now time.Time, changes []store.Change) ([]error, error) {
	start := time.Now()
	results, err := s.Store.Replace(ctx, now, changes)
	s.calls.byOp[opReplace].doneMany(ctx, start, len(changes), err)
	var counts [maxResults]int
	for _, refusal := range results {
		counts[s.calls.changedBy.place(refusal)]++
	}
	s.calls.changedBy.add(&counts)
	return results, err
}

// Forfeit measures the call and counts the leases.
func (s *measured) Forfeit(ctx context.Context, now time.Time, owner string, epoch int64) (int, error) {
	start := time.Now()
	n, err := s.Store.Forfeit(ctx, now, owner, epoch)
	s.calls.byOp[opForfeit].done(ctx, start, err)
	s.calls.forfeited.Add(float64(max(n, 0)))
	return n, err
}

// Get measures the call.
func (s *measured) Get(ctx context.Context, key store.Key) (store.Message, error) {
	start := time.Now()
	m, err := s.Store.Get(ctx, key)
	s.calls.byOp[opGet].done(ctx, start, err)
	return m, err
}

// Holder measures the call.
func (s *measured) Holder(ctx context.Context, queue, dedupKey string, now time.Time) (store.Key, error) {
	start := time.Now()
	key, err := s.Store.Holder(ctx, queue, dedupKey, now)
	s.calls.byOp[opHolder].done(ctx, start, err)
	return key, err
}

// List measures the call.
func (s *measured) List(ctx context.Context, query store.Query) (store.Page, error) {
	start := time.Now()
	page, err := s.Store.List(ctx, query)
	s.calls.byOp[opList].doneMany(ctx, start, len(page.Messages), err)
	return page, err
}

// Count measures the call.
func (s *measured) Count(ctx context.Context, query store.Query) (int64, error) {
	start := time.Now()
	n, err := s.Store.Count(ctx, query)
	s.calls.byOp[opCount].done(ctx, start, err)
	return n, err
}

// Queues measures the call.
func (s *measured) Queues(ctx context.Context, window store.Window) ([]store.QueueHint, error) {
	start := time.Now()
	hints, err := s.Store.Queues(ctx, window)
	s.calls.byOp[opQueues].done(ctx, start, err)
	return hints, err
}

// Purge measures the call and counts what was removed.
func (s *measured) Purge(ctx context.Context, now time.Time, limit int) (int, error) {
	start := time.Now()
	n, err := s.Store.Purge(ctx, now, limit)
	s.calls.byOp[opPurge].doneMany(ctx, start, n, err)
	s.calls.purged.Add(float64(max(n, 0)))
	return n, err
}

// Ping measures the call.
func (s *measured) Ping(ctx context.Context) error {
	start := time.Now()
	err := s.Store.Ping(ctx)
	s.calls.byOp[opPing].done(ctx, start, err)
	return err
}

// Docs returns the docs, measured.
func (s *measured) Docs() store.Docs { return &s.docs }

// skew is by how much a store's clock is ahead of the local one.
type skew struct {
	known atomic.Bool
	ahead atomic.Int64 // nanoseconds
}

// observe compares a reading of the store's clock, made at some moment of a call, with the middle of the call.
func (s *skew) observe(storeNow, start time.Time, took time.Duration) {
	s.ahead.Store(int64(storeNow.Sub(start.Round(0).Add(took / 2))))
	s.known.Store(true)
}

// read returns the last observation.
func (s *skew) read() (ahead time.Duration, known bool) {
	return time.Duration(s.ahead.Load()), s.known.Load()
}
