package main

import (
	"fmt"
	"sync/atomic"
	"time"
)

// drain measures the whole way of due messages, claim, an empty handler, settle; SQLite beside a bare loop.
func (b *bench) drain() error {
	fmt.Printf("\ndrain of %d                per second     of bare SQLite, %d per tx\n", b.backlog, bareBatch)
	for _, keep := range []bool{false, true} {
		limit := 0.0
		if b.has("sqlite") {
			var err error
			if limit, err = b.bareDrain(keep); err != nil {
				return err
			}
			fmt.Printf("bare SQLite      kept %-5v    %10.0f\n", keep, limit)
		}
		for _, name := range b.systems {
			rate, err := b.drainRate(name, keep)
			if err != nil {
				return err
			}
			fmt.Printf("%-16s kept %-5v    %10.0f", name, keep, rate)
			if name == "sqlite" {
				fmt.Printf("     %.2f", rate/limit)
			}
			fmt.Println()
		}
	}
	return nil
}

func (b *bench) drainRate(name string, keep bool) (float64, error) {
	s, err := b.open(name)
	if err != nil {
		return 0, err
	}
	defer s.close()
	if o, ok := s.(*onStore); ok && keep {
		o.keep.Done = time.Hour
	}
	if err := s.fill(b.ctx, b.backlog, time.Now().Add(-time.Second), time.Second); err != nil {
		return 0, err
	}
	var n atomic.Int64
	all := make(chan struct{})
	began := time.Now()
	stop, err := s.work(func(time.Time) {
		if n.Add(1) == int64(b.backlog) {
			close(all)
		}
	})
	if err != nil {
		return 0, err
	}
	defer stop()
	select {
	case <-all:
	case <-time.After(5 * time.Minute):
		return 0, fmt.Errorf("%s: %d of %d messages were delivered", name, n.Load(), b.backlog)
	}
	return float64(b.backlog) / time.Since(began).Seconds(), nil
}
