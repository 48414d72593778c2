package main

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/belfryhq/belfry"
)

// accept measures accepts by concurrent callers beside a bare loop of inserts into the same table.
func (b *bench) accept() error {
	bare, err := b.bareInserts()
	if err != nil {
		return err
	}
	fmt.Printf("\naccept              per second   of 1 per tx   of 500 per tx\n")
	fmt.Printf("bare, 1 per tx      %10.0f\nbare, 500 per tx    %10.0f\n", bare.single, bare.batched)
	for _, kind := range kinds {
		for _, callers := range []int{1, 16, 64} {
			rate, err := b.acceptRate(kind, callers)
			if err != nil {
				return err
			}
			fmt.Printf("%-7s %3d callers %10.0f   %11.2f   %13.2f\n", kind, callers, rate, rate/bare.single, rate/bare.batched)
		}
	}
	return nil
}

// acceptRate returns the accepts per second of concurrent callers, one message each call.
func (b *bench) acceptRate(kind string, callers int) (float64, error) {
	s, _, done, err := b.open(kind)
	if err != nil {
		return 0, err
	}
	defer done()
	c := belfry.New(s, belfry.Settings{Logger: quiet})
	defer c.Close()
	var n atomic.Int64
	var failure atomic.Value
	var wait sync.WaitGroup
	began := time.Now()
	for range callers {
		wait.Go(func() {
			for time.Since(began) < b.span {
				if _, err := c.Schedule(b.ctx, "bench", payload, belfry.In(time.Hour)); err != nil {
					failure.Store(err)
					return
				}
				n.Add(1)
			}
		})
	}
	wait.Wait()
	if err, failed := failure.Load().(error); failed {
		return 0, err
	}
	return float64(n.Load()) / time.Since(began).Seconds(), nil
}
