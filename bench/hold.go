package main

import (
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/belfryhq/belfry"
	"github.com/belfryhq/belfry/store"
)

// hold measures what many waiting messages cost: time to accept them, memory, claims among them, and lag.
func (b *bench) hold() error {
	for _, name := range b.systems {
		s, err := b.open(name)
		if err != nil {
			return err
		}
		err = b.holdIn(name, s)
		s.close()
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) holdIn(name string, s system) error {
	o, ours := s.(*onStore)
	var small, large time.Duration
	var err error
	if ours {
		if small, err = b.claimTime(o.store, "few", 1000); err != nil {
			return err
		}
	}
	before := heap()
	began := time.Now()
	if err := s.fill(b.ctx, b.waiting, time.Now().Add(time.Hour), 24*time.Hour); err != nil {
		return err
	}
	took := time.Since(began)
	each := max(0, float64(heap())-float64(before)) / float64(b.waiting)
	fmt.Printf("\n%s, %d waiting: %.0f put per second, %.0f bytes of heap each\n", name, b.waiting, float64(b.waiting)/took.Seconds(), each)
	if ours {
		if large, err = b.claimTime(o.store, belfry.DefaultQueue, 0); err != nil {
			return err
		}
		fmt.Printf("claim of 200: %v with 1,000 waiting, %v among all: %.2f\n", small, large, float64(large)/float64(small))
	}
	for _, rate := range []int{1000, 2000} {
		lags, err := b.lagAt(s, rate, 0)
		if err != nil {
			return err
		}
		report(name, rate, lags)
	}
	return nil
}

// claimTime returns the median time of claims of 200 messages each, which are given back as they were.
func (b *bench) claimTime(s store.Store, queue string, put int) (time.Duration, error) {
	for i := range put {
		m := store.Message{Queue: queue, ID: fmt.Sprint(i), FireAt: store.Ceil(time.Now().Add(time.Hour)), Payload: stamped(time.Now())}
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

// heap returns the bytes in use after a collection.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
