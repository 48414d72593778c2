package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/belfryhq/belfry"
	"github.com/belfryhq/belfry/store"
)

const backlog = 100_000

// drain measures the whole way of due messages: claim, an empty handler, settle; beside a bare loop on SQLite.
func (b *bench) drain() error {
	fmt.Printf("\ndrain of %d         per second     of the bare loop, %d per tx\n", backlog, bareBatch)
	for _, keep := range []bool{false, true} {
		limit, err := b.bareDrain(keep)
		if err != nil {
			return err
		}
		fmt.Printf("bare    kept %-5v %14.0f\n", keep, limit)
		for _, kind := range kinds {
			rate, err := b.drainRate(kind, keep)
			if err != nil {
				return err
			}
			fmt.Printf("%-7s kept %-5v %14.0f     %.2f\n", kind, keep, rate, rate/limit)
		}
	}
	return nil
}

func (b *bench) drainRate(kind string, keep bool) (float64, error) {
	s, _, done, err := b.open(kind)
	if err != nil {
		return 0, err
	}
	defer done()
	c := belfry.New(s, belfry.Settings{Logger: quiet})
	defer c.Close()
	retention := belfry.Retention{}
	if keep {
		retention.Done = time.Hour
	}
	if err := b.fill(s, backlog, time.Now(), time.Second, retention); err != nil {
		return 0, err
	}
	var n atomic.Int64
	all := make(chan struct{})
	mux := belfry.NewMux()
	mux.HandleFunc("bench", func(context.Context, belfry.Delivery) error {
		if n.Add(1) == backlog {
			close(all)
		}
		return nil
	})
	began := time.Now()
	stop, err := b.work(c, belfry.WorkerSettings{Mux: mux})
	if err != nil {
		return 0, err
	}
	<-all
	stop()
	return backlog / time.Since(began).Seconds(), nil
}

// fill puts n messages whose instants are spread over a span from an instant on.
func (b *bench) fill(s store.Store, n int, from time.Time, span time.Duration, keep belfry.Retention) error {
	batch := make([]store.Message, 0, 1000)
	for i := range n {
		batch = append(batch, store.Message{
			Queue: belfry.DefaultQueue, ID: fmt.Sprintf("fill-%010d", i), Kind: "bench", Payload: payload, Retention: keep,
			FireAt: store.Ceil(from.Add(time.Duration(float64(span) * float64(i) / float64(n)))),
			Retry:  belfry.DefaultRetry,
		})
		if len(batch) == cap(batch) || i == n-1 {
			if _, err := s.Put(b.ctx, time.Now(), batch, 0); err != nil {
				return err
			}
			batch = batch[:0]
		}
	}
	return nil
}
