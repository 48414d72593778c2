package main

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// lag measures how long after its instant each delivery begins, for messages that are due a second after their accept
// and for such that are due at once.
func (b *bench) lag() error {
	for _, ahead := range []time.Duration{time.Second, 0} {
		fmt.Printf("\nlag, due %-6v             rate    p50       p99       p99.9     most      early\n", ahead)
		for _, name := range b.systems {
			for _, rate := range []int{1, 10, 100, 1000, 2000, 5000} {
				if rate == 1 && ahead == 0 {
					continue
				}
				s, err := b.open(name)
				if err != nil {
					return err
				}
				lags, err := b.lagAt(s, rate, ahead)
				s.close()
				if err != nil {
					fmt.Printf("%-26s %7d    %v\n", name, rate, err)
					continue
				}
				report(name, rate, lags)
			}
		}
	}
	return nil
}

func report(name string, rate int, lags []time.Duration) {
	slices.Sort(lags)
	early := 0
	for _, l := range lags {
		if l < 0 {
			early++
		}
	}
	at := func(p float64) time.Duration {
		if len(lags) == 0 {
			return 0
		}
		return lags[min(int(p*float64(len(lags))), len(lags)-1)].Round(10 * time.Microsecond)
	}
	fmt.Printf("%-26s %7d    %-9v %-9v %-9v %-9v %d\n", name, rate, at(.5), at(.99), at(.999), at(1), early)
}

// lagAt accepts messages at a rate, each due some time after its accept, and returns how late each began. The first
// tenth, while everything warms up, is not counted.
func (b *bench) lagAt(s system, rate int, ahead time.Duration) ([]time.Duration, error) {
	n := max(int(b.span.Seconds())*rate, 5)
	var mu sync.Mutex
	lags := make([]time.Duration, 0, n)
	all := make(chan struct{})
	stop, err := s.work(func(due time.Time) {
		late := time.Since(due)
		mu.Lock()
		defer mu.Unlock()
		if lags = append(lags, late); len(lags) == n {
			close(all)
		}
	})
	if err != nil {
		return nil, err
	}
	defer stop()
	time.Sleep(500 * time.Millisecond) // until it has settled
	began := time.Now()
	var wait sync.WaitGroup
	for i := range n {
		time.Sleep(time.Until(began.Add(time.Duration(i) * time.Second / time.Duration(rate))))
		wait.Go(func() {
			if err := s.accept(b.ctx, time.Now().Add(ahead)); err != nil {
				fmt.Println("accept:", err)
			}
		})
	}
	wait.Wait()
	select {
	case <-all:
		return lags[n/10:], nil
	case <-time.After(30 * time.Second):
		mu.Lock()
		defer mu.Unlock()
		return nil, fmt.Errorf("%d of %d messages were delivered", len(lags), n)
	}
}
