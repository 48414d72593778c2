package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/belfryhq/belfry"
	"github.com/belfryhq/belfry/store"
)

// hold measures what many waiting messages cost: time to accept them, memory, claims among them, and lag.
func (b *bench) hold() error {
	fmt.Printf("\nhold             put/s      heap/message   claim of 200: empty   among them   ratio\n")
	for _, kind := range kinds {
		if err := b.holdIn(kind); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) holdIn(kind string) error {
	s, _, done, err := b.open(kind)
	if err != nil {
		return err
	}
	defer done()
	small, err := b.claimTime(s, "few", 1000)
	if err != nil {
		return err
	}
	before := heap()
	began := time.Now()
	if err := b.fill(s, b.waiting, time.Now().Add(time.Hour), 24*time.Hour, belfry.Retention{}); err != nil {
		return err
	}
	took := time.Since(began)
	each := max(0, float64(heap())-float64(before)) / float64(b.waiting)
	large, err := b.claimTime(s, belfry.DefaultQueue, 0)
	if err != nil {
		return err
	}
	fmt.Printf("%-7s %8d %7.0f   %12.0f   %19v   %10v   %.2f\n", kind, b.waiting, float64(b.waiting)/took.Seconds(), each, small, large,
		float64(large)/float64(small))
	lags, err := b.lagAt(s, 1000)
	if err != nil {
		return err
	}
	fmt.Printf("lag at 1,000/s with %d waiting:\n", b.waiting)
	report(kind, 1000, lags)
	return nil
}

// claimTime returns the median time of claims of 200 messages each, which are given back as they were.
func (b *bench) claimTime(s store.Store, queue string, put int) (time.Duration, error) {
	for i := range put {
		m := store.Message{Queue: queue, ID: fmt.Sprint(i), FireAt: store.Ceil(time.Now().Add(time.Hour)), Payload: payload}
		if _, err := s.Put(b.ctx, time.Now(), []store.Message{m}, 0); err != nil {
			return 0, err
		}
	}
	var times []time.Duration
	now := time.Now().Add(25 * time.Hour) // when all are due
	for range 21 {
		began := time.Now()
		claimed, err := s.Claim(b.ctx, store.Claim{
			Now: now, Until: now.Add(time.Minute), Owner: "bench", Queues: []store.QueueClaim{{Queue: queue, Limit: 200}},
		})
		times = append(times, time.Since(began))
		if err != nil {
			return 0, err
		}
		back := make([]store.Settlement, len(claimed.Messages))
		for i := range claimed.Messages {
			m := &claimed.Messages[i]
			back[i] = store.Settlement{Token: m.Token(), Outcome: store.OutcomeRelease, At: m.DueAt}
		}
		if _, err := s.Settle(b.ctx, now, back); err != nil {
			return 0, err
		}
	}
	slices.Sort(times)
	return times[len(times)/2].Round(time.Microsecond), nil
}
