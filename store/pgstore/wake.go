package pgstore

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/belfryhq/belfry/store"
)

var (
	_ store.Waker      = (*Store)(nil)
	_ store.Transactor = (*Store)(nil)
)

// waker carries wake-ups by NOTIFY.
type waker struct {
	pool    *pgxpool.Pool
	channel string
	pooled  bool
	closed  chan struct{}

	mu   sync.Mutex // held while told is added to, or closed is closed
	told sync.WaitGroup
}

func newWaker(pool *pgxpool.Pool, s Settings) *waker {
	return &waker{pool: pool, channel: s.Schema + "_" + s.Prefix + "wake", pooled: s.Pooled, closed: make(chan struct{})}
}

// Hints travel as JSON, {"queue": milliseconds}, in notifications that PostgreSQL bounds at 8000 bytes.
const mostNotified = 7000

// Wake tells every process that listens.
func (s *Store) Wake(ctx context.Context, hints []store.QueueHint) error {
	leave, err := s.db.enter()
	if err != nil {
		return err
	}
	defer leave()
	return eachText(hints, func(text string) error {
		_, err := s.pool.Exec(ctx, queryNotify, s.waker.channel, text)
		return err
	})
}

// queryNotify sends a text on a channel.
const queryNotify = "SELECT pg_notify($1, $2)"

// eachText sends the texts of hints.
func eachText(hints []store.QueueHint, send func(text string) error) error {
	texts, err := encodeHints(hints)
	for _, text := range texts {
		if err == nil {
			err = send(text)
		}
	}
	return err
}

// encodeHints returns the hints as texts that notifications can carry, each queue with its earliest instant.
func encodeHints(hints []store.QueueHint) ([]string, error) {
	var texts []string
	next, size := map[string]int64{}, 0
	flush := func() error {
		if len(next) == 0 {
			return nil
		}
		text, err := json.Marshal(next)
		texts = append(texts, string(text))
		clear(next)
		size = 0
		return err
	}
	for _, h := range hints {
		at := h.At.UnixMilli()
		if known, ok := next[h.Queue]; ok {
			next[h.Queue] = min(known, at)
			continue
		}
		quoted, err := json.Marshal(h.Queue)
		if err != nil {
			return nil, err
		}
		if size += len(quoted) + 24; size > mostNotified {
			if err := flush(); err != nil {
				return nil, err
			}
			size = len(quoted) + 24
		}
		next[h.Queue] = at
	}
	err := flush()
	return texts, err
}

// tell sends wake-ups in the background: the store itself has something to say.
func (w *waker) tell(hints []store.QueueHint) {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-w.closed:
		return
	default:
	}
	w.told.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = eachText(hints, func(text string) error { // a lost one costs the safety scan's interval
			_, err := w.pool.Exec(ctx, queryNotify, w.channel, text)
			return err
		})
	})
}

// Listen hears wake-ups on a connection of its own until ctx ends or the connection is lost. Behind a pooler there are none:
// it waits for the end.
func (s *Store) Listen(ctx context.Context, ready func(), heard func([]store.QueueHint)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-s.waker.closed:
			cancel(store.ErrClosed)
		case <-done:
		}
	}()
	err := s.waker.listen(ctx, ready, heard)
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

func (w *waker) listen(ctx context.Context, ready func(), heard func([]store.QueueHint)) error {
	if w.pooled {
		<-ctx.Done()
		return ctx.Err()
	}
	conf := w.pool.Config().ConnConfig.Copy()
	conf.RuntimeParams["application_name"] = "belfry listener"
	c, err := pgx.ConnectConfig(ctx, conf)
	if err != nil {
		return err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = c.Close(closing) // nothing is lost with it
	}()
	if _, err := c.Exec(ctx, "LISTEN "+pgx.Identifier{w.channel}.Sanitize()); err != nil {
		return err
	}
	if ready != nil {
		ready()
	}
	for {
		n, err := w.wait(ctx, c)
		if err != nil {
			return err
		}
		if n == "" {
			continue
		}
		var next map[string]int64
		if err := json.Unmarshal([]byte(n), &next); err != nil {
			continue // not one of ours
		}
		hints := make([]store.QueueHint, 0, len(next))
		for queue, at := range next {
			hints = append(hints, store.QueueHint{Queue: queue, At: time.UnixMilli(at).UTC()})
		}
		heard(hints)
	}
}

// checkEvery is how often a listener that hears nothing finds out whether its connection still stands.
const checkEvery = 30 * time.Second

// wait returns the next notification; empty: none came for a while, and the connection stands.
func (w *waker) wait(ctx context.Context, c *pgx.Conn) (string, error) {
	waiting, cancel := context.WithTimeout(ctx, checkEvery)
	defer cancel()
	n, err := c.WaitForNotification(waiting)
	switch {
	case err == nil:
		return n.Payload, nil
	case ctx.Err() != nil || waiting.Err() == nil:
		return "", err
	}
	asking, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return "", c.Ping(asking)
}

func (w *waker) close() {
	w.mu.Lock()
	close(w.closed)
	w.mu.Unlock()
	w.told.Wait()
}
