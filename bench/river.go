package main

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// riverSystem is River on PostgreSQL, with the settings of its own benchmark: many workers, short cooldown and polls.
type riverSystem struct {
	pool   *pgxpool.Pool
	client *river.Client[pgx.Tx] // inserts only
	remove func()
}

// riverJob is what River carries.
type riverJob struct {
	Due     int64  `json:"due"`
	Payload []byte `json:"payload"`
}

// Kind names the job.
func (riverJob) Kind() string { return kind }

func newRiverJob(due time.Time) riverJob {
	return riverJob{due.UnixNano(), make([]byte, payloadSize*3/4)} // base64 makes it the usual size
}

func openRiver(b *bench) (system, error) {
	url, remove, err := b.freshPostgres()
	if err != nil {
		return nil, err
	}
	conf, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	conf.MaxConns = 40
	pool, err := pgxpool.NewWithConfig(b.ctx, conf)
	if err != nil {
		return nil, err
	}
	driver := riverpgxv5.New(pool)
	migrator, err := rivermigrate.New(driver, nil)
	if err != nil {
		return nil, err
	}
	if _, err := migrator.Migrate(b.ctx, rivermigrate.DirectionUp, nil); err != nil {
		return nil, err
	}
	client, err := river.NewClient(driver, &river.Config{Logger: quiet})
	if err != nil {
		return nil, err
	}
	return &riverSystem{pool, client, remove}, nil
}

func (r *riverSystem) accept(ctx context.Context, due time.Time) error {
	var opts *river.InsertOpts
	if time.Until(due) > time.Millisecond {
		opts = &river.InsertOpts{ScheduledAt: due}
	}
	_, err := r.client.Insert(ctx, newRiverJob(due), opts)
	return err
}

func (r *riverSystem) fill(ctx context.Context, n int, from time.Time, span time.Duration) error {
	batch := make([]river.InsertManyParams, 0, 5000)
	for i := range n {
		due := from.Add(time.Duration(float64(span) * float64(i) / float64(n)))
		p := river.InsertManyParams{Args: newRiverJob(due)}
		if due.After(time.Now()) {
			p.InsertOpts = &river.InsertOpts{ScheduledAt: due}
		}
		batch = append(batch, p)
		if len(batch) == cap(batch) || i == n-1 {
			if _, err := r.client.InsertManyFast(ctx, batch); err != nil {
				return err
			}
			batch = batch[:0]
		}
	}
	return nil
}

// riverWorker calls began.
type riverWorker struct {
	river.WorkerDefaults[riverJob]
	began func(time.Time)
}

// Work is the handler.
func (w *riverWorker) Work(_ context.Context, job *river.Job[riverJob]) error {
	w.began(time.Unix(0, job.Args.Due))
	return nil
}

func (r *riverSystem) work(began func(due time.Time)) (stop func(), err error) {
	workers := river.NewWorkers()
	river.AddWorker(workers, &riverWorker{began: began})
	client, err := river.NewClient(riverpgxv5.New(r.pool), &river.Config{
		Logger: quiet, Workers: workers,
		Queues:        map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 2000}},
		FetchCooldown: 2 * time.Millisecond, FetchPollInterval: 20 * time.Millisecond,
	})
	if err != nil {
		return nil, err
	}
	if err := client.Start(context.Background()); err != nil {
		return nil, err
	}
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = client.StopAndCancel(ctx)
	}, nil
}

func (r *riverSystem) close() {
	r.pool.Close()
	r.remove()
}
