package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/belfryhq/belfry"
	"github.com/belfryhq/belfry/store"
	"github.com/belfryhq/belfry/store/memstore"
	"github.com/belfryhq/belfry/store/pgstore"
	"github.com/belfryhq/belfry/store/redisstore"
	"github.com/belfryhq/belfry/store/sqlitestore"
)

// onStore is Belfry on a store.
type onStore struct {
	store  store.Store
	client *belfry.Client
	keep   belfry.Retention
	path   string // of a file
	remove func()
}

func newOnStore(s store.Store, remove func()) *onStore {
	return &onStore{store: s, client: belfry.New(s, belfry.Settings{Logger: quiet}), remove: remove}
}

func openMemory(*bench) (system, error) { return newOnStore(memstore.New(), func() {}), nil }

func openSQLite(b *bench) (system, error) {
	dir, err := os.MkdirTemp("", "belfry-bench")
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "belfry.db")
	s, err := sqlitestore.Open(b.ctx, path, sqlitestore.Settings{})
	if err != nil {
		return nil, err
	}
	o := newOnStore(s, func() { _ = os.RemoveAll(dir) })
	o.path = path
	return o, nil
}

func openPostgres(b *bench) (system, error) {
	url, remove, err := b.freshPostgres()
	if err != nil {
		return nil, err
	}
	s, err := pgstore.Open(b.ctx, url, pgstore.Settings{})
	if err != nil {
		return nil, err
	}
	return newOnStore(s, remove), nil
}

func openRedis(b *bench) (system, error) {
	url, remove, err := b.freshRedis()
	if err != nil {
		return nil, err
	}
	s, err := redisstore.Open(b.ctx, url, redisstore.Settings{})
	if err != nil {
		return nil, err
	}
	return newOnStore(s, remove), nil
}

const kind = "bench"

func (o *onStore) accept(ctx context.Context, due time.Time) error {
	_, err := o.client.Schedule(ctx, kind, stamped(due), belfry.At(due))
	return err
}

func (o *onStore) fill(ctx context.Context, n int, from time.Time, span time.Duration) error {
	batch := make([]store.Message, 0, 1000)
	for i := range n {
		due := store.Ceil(from.Add(time.Duration(float64(span) * float64(i) / float64(n))))
		batch = append(batch, store.Message{
			Queue: belfry.DefaultQueue, ID: fmt.Sprintf("fill-%d-%010d", from.UnixNano(), i), Kind: kind, Payload: stamped(due),
			Retention: o.keep, FireAt: due, Retry: belfry.DefaultRetry,
		})
		if len(batch) == cap(batch) || i == n-1 {
			if _, err := o.store.Put(ctx, time.Now(), batch, 0); err != nil {
				return err
			}
			batch = batch[:0]
		}
	}
	return nil
}

func (o *onStore) work(began func(due time.Time)) (stop func(), err error) {
	mux := belfry.NewMux()
	mux.HandleFunc(kind, func(_ context.Context, d belfry.Delivery) error {
		began(dueOf(d.Payload))
		return nil
	})
	w, err := belfry.NewWorker(o.client, belfry.WorkerSettings{
		Mux: mux, Logger: quiet, Queues: []belfry.QueueWorker{{Name: belfry.DefaultQueue, Concurrency: 1000}},
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	return func() { cancel(); <-ended }, nil
}

func (o *onStore) close() {
	o.client.Close()
	_ = o.store.Close() // the data goes
	o.remove()
}
