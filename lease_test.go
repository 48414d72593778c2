package belfry_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/belfryhq/belfry"
	"github.com/belfryhq/belfry/store"
	"github.com/belfryhq/belfry/store/memstore"
)

func TestALongDeliveryKeepsItsLease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := running(t, belfry.WorkerSettings{Lease: 3 * time.Second})
		var got record
		e.mux.HandleFunc("k", func(ctx context.Context, d belfry.Delivery) error {
			time.Sleep(time.Minute)
			if left := time.Until(d.Lease.Until()); left < time.Second {
				t.Errorf("%v are left of the lease", left)
			}
			if p := d.Lease.Progress(); p != time.Minute {
				t.Errorf("progress is %v", p)
			}
			return got.failing(ctx.Err())(ctx, d)
		})
		m := e.schedule("k", nil)
		pass(2 * time.Minute)
		if done := e.get(m); got.count() != 1 || done.State != belfry.Done || done.Claims != 1 {
			t.Errorf("%d deliveries, %v, %d claims", got.count(), done.State, done.Claims)
		}
	})
}

func TestALostLeaseEndsTheDeliveryAndItsOutcomeChangesNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		e := newEngine(t, s, belfry.WorkerSettings{Lease: 3 * time.Second}).start()
		var cause error
		e.mux.HandleFunc("k", func(ctx context.Context, _ belfry.Delivery) error {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return errBoom
		})
		m := e.schedule("k", nil)
		pass(time.Second)
		held := e.get(m)
		held.State, held.FireAt, held.DueAt = belfry.Scheduled, time.Now().Add(time.Hour), time.Now().Add(time.Hour)
		if errs, err := s.Replace(t.Context(), time.Now(), []store.Change{{Message: held, Mode: store.Revoke}}); err != nil || errs[0] != nil {
			t.Fatal(err, errs)
		}
		pass(3 * time.Second)
		if !errors.Is(cause, belfry.ErrLeaseLost) {
			t.Errorf("the delivery's context ended because of %v", cause)
		}
		if got := e.get(m); got.State != belfry.Scheduled || got.Attempts != 0 || got.LastError != "" {
			t.Errorf("the message is %v with %d attempts and error %q", got.State, got.Attempts, got.LastError)
		}
	})
}

func TestAnInterruptedDeliveryEndsCanceled(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := running(t, belfry.WorkerSettings{})
		var cause error
		var at time.Time
		e.mux.HandleFunc("k", func(ctx context.Context, _ belfry.Delivery) error {
			<-ctx.Done()
			cause, at = context.Cause(ctx), time.Now()
			return cause
		})
		m := e.schedule("k", nil)
		pass(5 * time.Second)
		if _, err := e.Cancel(t.Context(), m.Queue, m.ID); !errors.Is(err, belfry.ErrInFlight) {
			t.Fatalf("Cancel of a running delivery: %v", err)
		}
		asked := time.Now()
		if _, err := e.Interrupt(t.Context(), m.Queue, m.ID); err != nil {
			t.Fatal(err)
		}
		pass(5 * time.Second)
		if !errors.Is(cause, belfry.ErrCanceled) || at.Sub(asked) > 2*time.Second {
			t.Errorf("the delivery ended after %v because of %v", at.Sub(asked), cause)
		}
		if got := e.get(m); got.State != belfry.Canceled {
			t.Errorf("the message is %v", got.State)
		}
	})
}

func TestAnInterruptedMessageThatWaitsForASlotIsNotDelivered(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEngine(t, memstore.New(), belfry.WorkerSettings{Queues: []belfry.QueueWorker{{Name: belfry.DefaultQueue, Concurrency: 1}}})
		var got record
		e.mux.HandleFunc("k", func(ctx context.Context, d belfry.Delivery) error {
			time.Sleep(time.Millisecond)
			if d.ID == "blocker" {
				time.Sleep(20 * time.Second)
			}
			return got.handle(ctx, d)
		})
		e.start()
		for range 100 { // so that the engine holds more than it delivers
			e.schedule("k", nil)
		}
		pass(50 * time.Millisecond)
		e.schedule("k", nil, belfry.ID("blocker"), belfry.Priority(-1))
		for range 30 {
			e.schedule("k", nil, belfry.ID(""), belfry.Priority(1))
		}
		pass(5 * time.Second)
		page, err := e.List(t.Context(), belfry.Query{States: []belfry.State{belfry.Leased}})
		if err != nil || len(page.Messages) < 2 {
			t.Fatalf("%d messages are held, %v", len(page.Messages), err)
		}
		for _, m := range page.Messages {
			if m.ID != "blocker" {
				if _, err := e.Interrupt(t.Context(), m.Queue, m.ID); err != nil {
					t.Fatal(err)
				}
				pass(time.Minute)
				if after := e.get(m); after.State != belfry.Canceled || after.Attempts != 0 {
					t.Errorf("the message is %v after %d attempts", after.State, after.Attempts)
				}
				return
			}
		}
	})
}

func TestACrashedClaimIsDeliveredAgainAndBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		e := newEngine(t, s, belfry.WorkerSettings{})
		var got record
		e.mux.HandleFunc("k", got.handle)
		m := e.schedule("k", nil, belfry.MaxAttempts(1))
		crash := func() {
			now := time.Now()
			c, err := s.Claim(t.Context(), store.Claim{
				Now: now, Until: now.Add(time.Second), Owner: "crashing", Queues: []store.QueueClaim{{Queue: m.Queue, Limit: 1}},
			})
			if err != nil || len(c.Messages) != 1 {
				t.Fatalf("%d messages, %v", len(c.Messages), err)
			}
			time.Sleep(time.Second)
		}
		for range 4 {
			crash()
		}
		if got := e.get(m); got.Attempts != 0 || got.Claims != 4 {
			t.Fatalf("%d attempts and %d claims after four crashes", got.Attempts, got.Claims)
		}
		crash()
		e.start()
		pass(time.Minute)
		dead := e.get(m)
		if got.count() != 0 || dead.State != belfry.Dead || dead.LastError != "lease expired 5 times" {
			t.Errorf("%d deliveries, %v, %q", got.count(), dead.State, dead.LastError)
		}
	})
}

func TestANodeThatStartsAgainHasItsMessagesBackAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		var got record
		m, err := belfry.New(s, belfry.Settings{Logger: quiet}).Schedule(t.Context(), "k", nil)
		if err != nil {
			t.Fatal(err)
		}
		now := time.Now()
		if _, err := s.Claim(t.Context(), store.Claim{
			Now: now, Until: now.Add(time.Hour), Owner: "n", Epoch: 0, Queues: []store.QueueClaim{{Queue: m.Queue, Limit: 1}},
		}); err != nil {
			t.Fatal(err)
		}
		e := newEngine(t, s, belfry.WorkerSettings{Node: "n"})
		e.mux.HandleFunc("k", got.handle)
		e.start()
		pass(time.Second)
		if got.count() != 1 {
			t.Errorf("%d deliveries", got.count())
		}
	})
}

func TestAPanicIsAFailedAttempt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := running(t, belfry.WorkerSettings{})
		e.mux.HandleFunc("k", func(context.Context, belfry.Delivery) error { panic("kaboom") })
		m := e.schedule("k", nil, belfry.MaxAttempts(2))
		pass(time.Minute)
		if got := e.get(m); got.State != belfry.Dead || got.Attempts != 2 || got.LastError != "panic: kaboom" {
			t.Errorf("%v after %d attempts: %q", got.State, got.Attempts, got.LastError)
		}
	})
}

func TestATimeoutEndsTheDeliveryAndCanBeMoved(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := running(t, belfry.WorkerSettings{})
		var ended []time.Duration
		e.mux.HandleFunc("k", func(ctx context.Context, d belfry.Delivery) error {
			began := time.Now()
			if d.Attempt == 2 {
				d.Lease.Extend(time.Minute)
			}
			<-ctx.Done()
			ended = append(ended, time.Since(began))
			return ctx.Err()
		})
		m := e.schedule("k", nil, belfry.Timeout(5*time.Second), belfry.MaxAttempts(2))
		pass(5 * time.Minute)
		if len(ended) != 2 || ended[0] != 5*time.Second || ended[1] != time.Minute {
			t.Errorf("the deliveries ended after %v", ended)
		}
		if got := e.get(m); got.State != belfry.Dead || got.LastError != context.DeadlineExceeded.Error() {
			t.Errorf("%v: %q", got.State, got.LastError)
		}
	})
}
