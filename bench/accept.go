package main

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// accept measures accepts by concurrent callers, one message a call.
func (b *bench) accept() error {
	bare, err := b.bareInserts()
	if err != nil {
		return err
	}
	fmt.Printf("\naccept                          per second   of bare SQLite, 1 per tx   500 per tx\n")
	fmt.Printf("bare SQLite, 1 per tx           %10.0f\nbare SQLite, 500 per tx         %10.0f\n", bare.single, bare.batched)
	for _, name := range b.systems {
		for _, callers := range []int{1, 16, 64} {
			rate, err := b.acceptRate(name, callers)
			if err != nil {
				return err
			}
			fmt.Printf("%-16s %3d callers    %10.0f", name, callers, rate)
			if name == "sqlite" {
				fmt.Printf("   %24.2f   %10.2f", rate/bare.single, rate/bare.batched)
			}
			fmt.Println()
		}
	}
	return nil
}

// acceptRate returns the accepts per second of concurrent callers.
func (b *bench) acceptRate(name string, callers int) (float64, error) {
	s, err := b.open(name)
	if err != nil {
		return 0, err
	}
	defer s.close()
	var n atomic.Int64
	var failure atomic.Value
	var wait sync.WaitGroup
	began := time.Now()
	for range callers {
		wait.Go(func() {
			for time.Since(began) < b.span {
				if err := s.accept(b.ctx, time.Now().Add(time.Hour)); err != nil {
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
