package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/belfryhq/belfry"
	"github.com/belfryhq/belfry/store"
)

// lag measures how long after its instant each delivery begins, at several rates.
func (b *bench) lag() error {
	fmt.Printf("\nlag          rate    p50       p99       p99.9     most      early\n")
	for _, kind := range kinds {
		for _, rate := range []int{1, 100, 1000, 5000} {
			s, _, done, err := b.open(kind)
			if err != nil {
				return err
			}
			lags, err := b.lagAt(s, rate)
			done()
			if err != nil {
				return err
			}
			report(kind, rate, lags)
		}
	}
	return nil
}

func report(kind string, rate int, lags []time.Duration) {
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
	fmt.Printf("%-9s %7d    %-9v %-9v %-9v %-9v %d\n", kind, rate, at(.5), at(.99), at(.999), at(1), early)
}

// lagAt accepts messages at a rate, each due a second after its accept, and returns how late each began.
func (b *bench) lagAt(s store.Store, rate int) ([]time.Duration, error) {
	c := belfry.New(s, belfry.Settings{Logger: quiet})
	defer c.Close()
	n := max(int(b.span.Seconds())*rate, 5)
	var mu sync.Mutex
	lags := make([]time.Duration, 0, n)
	all := make(chan struct{})
	mux := belfry.NewMux()
	mux.HandleFunc("lag", func(_ context.Context, d belfry.Delivery) error {
		late := time.Since(d.FireAt)
		mu.Lock()
		defer mu.Unlock()
		if lags = append(lags, late); len(lags) == n {
			close(all)
		}
		return nil
	})
	stop, err := b.work(c, belfry.WorkerSettings{Mux: mux})
	if err != nil {
		return nil, err
	}
	defer stop()
	began := time.Now()
	var wait sync.WaitGroup
	for i := range n {
		time.Sleep(time.Until(began.Add(time.Duration(i) * time.Second / time.Duration(rate))))
		wait.Go(func() {
			if _, err := c.Schedule(b.ctx, "lag", payload, belfry.In(time.Second)); err != nil {
				fmt.Println("accept:", err)
			}
		})
	}
	wait.Wait()
	select {
	case <-all:
	case <-time.After(30 * time.Second):
		return nil, fmt.Errorf("%d of %d messages were delivered", len(lags), n)
	}
	return lags, nil
}

// work runs a worker until stop is called.
func (b *bench) work(c *belfry.Client, settings belfry.WorkerSettings) (stop func(), err error) {
	settings.Logger = quiet
	w, err := belfry.NewWorker(c, settings)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(b.ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	return func() { cancel(); <-ended }, nil
}
