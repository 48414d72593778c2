package belfry_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/belfryhq/belfry"
	"github.com/belfryhq/belfry/store/memstore"
)

func TestAStopLetsWhatRunsFinish(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := running(t, belfry.WorkerSettings{Grace: time.Minute})
		e.mux.HandleFunc("k", func(ctx context.Context, _ belfry.Delivery) error {
			select {
			case <-time.After(30 * time.Second):
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
		m := e.schedule("k", nil)
		pass(time.Second)
		began := time.Now()
		if err := e.stopped(); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took != 29*time.Second {
			t.Errorf("the stop took %v", took)
		}
		if got := e.get(m); got.State != belfry.Done {
			t.Errorf("the message is %v", got.State)
		}
	})
}

func TestAStopEndsWhatOutlivesTheGraceWithoutCountingIt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := running(t, belfry.WorkerSettings{Grace: 10 * time.Second})
		var cause error
		e.mux.HandleFunc("k", func(ctx context.Context, _ belfry.Delivery) error {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return cause
		})
		m := e.schedule("k", nil, belfry.MaxAttempts(1))
		pass(time.Second)
		if err := e.stopped(); err != nil {
			t.Fatal(err)
		}
		if !errors.Is(cause, belfry.ErrShutdown) {
			t.Errorf("the delivery's context ended because of %v", cause)
		}
		if got := e.get(m); got.State != belfry.Scheduled || got.Attempts != 0 || got.Claims != 0 {
			t.Errorf("the message is %v with %d attempts and %d claims", got.State, got.Attempts, got.Claims)
		}
	})
}

func TestAStopReportsADeliveryThatNeverEnds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := running(t, belfry.WorkerSettings{Grace: time.Second})
		release := make(chan struct{})
		e.mux.HandleFunc("k", func(context.Context, belfry.Delivery) error { <-release; return nil })
		e.schedule("k", nil)
		pass(time.Second)
		if err := e.stopped(); err == nil {
			t.Error("Run returned nil")
		}
		close(release)
		pass(time.Minute)
	})
}

func TestAStopGivesBackWhatWasNotStarted(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := running(t, belfry.WorkerSettings{Queues: []belfry.QueueWorker{{Name: belfry.DefaultQueue, Concurrency: 2}}})
		var got record
		e.mux.HandleFunc("k", got.handle)
		m := e.schedule("k", nil, belfry.In(time.Second))
		pass(950 * time.Millisecond) // claimed ahead by now
		if held := e.get(m); held.State != belfry.Leased {
			t.Fatalf("the message is %v", held.State)
		}
		if err := e.stopped(); err != nil {
			t.Fatal(err)
		}
		back := e.get(m)
		if back.State != belfry.Scheduled || !back.VisibleAt.Equal(m.FireAt) || back.Claims != 0 {
			t.Errorf("the message is %v, visible at %v, claims %d", back.State, back.VisibleAt, back.Claims)
		}
		pass(time.Minute)
		if got.count() != 0 {
			t.Error("a stopped worker delivered")
		}
	})
}

func TestRollingRestartsDeliverEveryMessageOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		var got record
		producer := belfry.New(s, belfry.Settings{Logger: quiet})
		defer producer.Close()
		const n = 2000
		at := time.Now()
		for i := range n {
			if _, err := producer.Schedule(t.Context(), "k", nil, belfry.At(at.Add(time.Duration(i)*5*time.Millisecond))); err != nil {
				t.Fatal(err)
			}
		}
		for range 110 {
			e := newEngine(t, s, belfry.WorkerSettings{Node: "n"})
			e.mux.HandleFunc("k", func(ctx context.Context, d belfry.Delivery) error {
				time.Sleep(20 * time.Millisecond)
				return got.handle(ctx, d)
			})
			e.start()
			pass(100 * time.Millisecond)
			if err := e.stopped(); err != nil {
				t.Fatal(err)
			}
		}
		seen := map[string]bool{}
		for _, id := range got.ids {
			if seen[id] {
				t.Fatalf("message %s was delivered twice", id)
			}
			seen[id] = true
		}
		if len(seen) != n {
			t.Errorf("%d of %d messages were delivered", len(seen), n)
		}
	})
}
