package main

import (
	"context"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

// asynqSystem is asynq on Redis, with many workers and the shortest checks that it documents as sensible.
type asynqSystem struct {
	options asynq.RedisConnOpt
	client  *asynq.Client
	remove  func()
}

func openAsynq(b *bench) (system, error) {
	url, remove, err := b.freshRedis()
	if err != nil {
		return nil, err
	}
	o, err := redis.ParseURL(url)
	if err != nil {
		return nil, err
	}
	options := asynq.RedisClientOpt{Addr: o.Addr, DB: o.DB, PoolSize: 64}
	return &asynqSystem{options, asynq.NewClient(options), remove}, nil
}

func (a *asynqSystem) accept(ctx context.Context, due time.Time) error {
	var options []asynq.Option
	if time.Until(due) > time.Millisecond {
		options = append(options, asynq.ProcessAt(due))
	}
	_, err := a.client.EnqueueContext(ctx, asynq.NewTask(kind, stamped(due)), options...)
	return err
}

// fill enqueues from 64 callers: asynq has no bulk call.
func (a *asynqSystem) fill(ctx context.Context, n int, from time.Time, span time.Duration) error {
	next := make(chan time.Time, 1000)
	failed := make(chan error, 64)
	for range 64 {
		go func() {
			var err error
			for due := range next {
				if err == nil {
					err = a.accept(ctx, due)
				}
			}
			failed <- err
		}()
	}
	for i := range n {
		next <- from.Add(time.Duration(float64(span) * float64(i) / float64(n)))
	}
	close(next)
	var first error
	for range 64 {
		if err := <-failed; err != nil && first == nil {
			first = err
		}
	}
	return first
}

func (a *asynqSystem) work(began func(due time.Time)) (stop func(), err error) {
	server := asynq.NewServer(a.options, asynq.Config{
		Concurrency: 100, LogLevel: asynq.FatalLevel,
		TaskCheckInterval: 20 * time.Millisecond, DelayedTaskCheckInterval: time.Second,
	})
	err = server.Start(asynq.HandlerFunc(func(_ context.Context, task *asynq.Task) error {
		began(dueOf(task.Payload()))
		return nil
	}))
	return server.Shutdown, err
}

func (a *asynqSystem) close() {
	_ = a.client.Close()
	a.remove()
}
