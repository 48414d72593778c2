package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/belfryhq/belfry"
	"github.com/belfryhq/belfry/store/memstore"
	"github.com/belfryhq/belfry/target"
	"github.com/belfryhq/belfry/telemetry"
)

// returning is a target that always says the same.
func returning(err error) belfry.Target {
	return target.Func(func(context.Context, belfry.Delivery) error { return err })
}

// because returns a context that has ended for a cause.
func because(cause error) context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	return ctx
}

func TestCountsAttemptsByHowTheyEnd(t *testing.T) {
	t.Parallel()
	plain := errors.New("refused")
	for _, c := range []struct {
		rule   string
		ctx    context.Context
		err    error
		result string
	}{
		{"nil is delivered", t.Context(), nil, "delivered"},
		{"nil is delivered even when the context has ended", because(belfry.ErrShutdown), nil, "delivered"},
		{"a plain error is to be tried again", t.Context(), plain, "retry"},
		{"an asked delay too", t.Context(), belfry.RetryAfter(plain, time.Second), "retry"},
		{"a passed deadline too", because(context.DeadlineExceeded), plain, "retry"},
		{"a permanent error is final", t.Context(), fmt.Errorf("post: %w", belfry.Permanent(plain)), "permanent"},
		{"a snooze counts as no attempt", t.Context(), belfry.Snooze(time.Second), "snoozed"},
		{"a shutdown interrupts", because(belfry.ErrShutdown), belfry.Permanent(plain), "interrupted"},
		{"a lost lease interrupts", because(belfry.ErrLeaseLost), plain, "interrupted"},
		{"a cancellation interrupts", because(belfry.ErrCanceled), plain, "interrupted"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			m := newScraped(t, telemetry.MetricsSettings{})
			measured := m.Middleware()(returning(c.err))
			if err := measured.Deliver(c.ctx, belfry.Delivery{Kind: "k", Target: "http"}); !errors.Is(err, c.err) {
				t.Fatalf("the error was changed to %v", err)
			}
			m.want(1, "belfry_attempts_total", "kind", "k", "target", "http")
			m.want(1, "belfry_attempts_total", "kind", "k", "target", "http", "result", c.result)
			m.want(1, "belfry_delivery_seconds", "target", "http")
		})
	}
}

func TestCountsAPanicAsAFailedAttempt(t *testing.T) {
	t.Parallel()
	m := newScraped(t, telemetry.MetricsSettings{})
	measured := m.Middleware()(target.Func(func(context.Context, belfry.Delivery) error { panic("handler") }))
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic did not reach the engine")
			}
		}()
		_ = measured.Deliver(t.Context(), belfry.Delivery{})
	}()
	m.want(1, "belfry_attempts_total", "result", "retry", "target", "handler")
	m.want(0, "belfry_deliveries_in_flight", "target", "handler")
}

func TestMeasuresLagAndDuration(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newScraped(t, telemetry.MetricsSettings{})
		measured := m.Middleware()(target.Func(func(context.Context, belfry.Delivery) error {
			m.want(1, "belfry_deliveries_in_flight", "target", "nats")
			time.Sleep(2 * time.Second)
			return nil
		}))
		for _, late := range []time.Duration{3 * time.Second, -time.Second} { // a clock that is behind is not negative lag
			if err := measured.Deliver(t.Context(), belfry.Delivery{Target: "nats", DueAt: time.Now().Add(-late)}); err != nil {
				t.Fatal(err)
			}
		}
		m.want(2, "belfry_fire_lag_seconds", "target", "nats")
		if lag := m.sum("belfry_fire_lag_seconds"); lag != 3 {
			t.Errorf("the lags add up to %v s, want 3", lag)
		}
		if took := m.sum("belfry_delivery_seconds", "target", "nats"); took != 4 {
			t.Errorf("the deliveries took %v s, want 4", took)
		}
		m.want(0, "belfry_deliveries_in_flight", "target", "nats")
	})
}

func TestBoundsTheLabels(t *testing.T) {
	t.Parallel()
	m := newScraped(t, telemetry.MetricsSettings{MaxKinds: 10})
	measured := m.Middleware()(returning(nil))
	for i := range 1000 {
		d := belfry.Delivery{Kind: fmt.Sprint("kind", i), Target: fmt.Sprint("target", i)}
		for range 2 {
			if err := measured.Deliver(t.Context(), d); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := measured.Deliver(t.Context(), belfry.Delivery{Kind: "\xff", Target: "\xff"}); err != nil {
		t.Fatal(err)
	}
	m.want(2, "belfry_attempts_total", "kind", "kind9", "result", "delivered")
	m.want(2*1000-20+1, "belfry_attempts_total", "kind", "other", "result", "delivered")
	kinds, targets := map[string]bool{}, map[string]bool{}
	for _, metric := range m.gather()["belfry_attempts_total"].GetMetric() {
		for _, l := range metric.GetLabel() {
			switch l.GetName() {
			case "kind":
				kinds[l.GetValue()] = true
			case "target":
				targets[l.GetValue()] = true
			}
		}
	}
	if len(kinds) != 11 || len(targets) != 51 {
		t.Errorf("%d kinds and %d targets have labels, want 10 and 50, and other", len(kinds), len(targets))
	}
	m.want(2*950+1, "belfry_delivery_seconds", "target", "other")
}

func TestShowsWhatWorkersDo(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newScraped(t, telemetry.MetricsSettings{})
		s := m.Store(memstore.New())
		mux, release := belfry.NewMux(), make(chan struct{})
		mux.HandleFunc("k", func(context.Context, belfry.Delivery) error { <-release; return nil })
		c, w, _ := running(t, s, belfry.Settings{}, belfry.WorkerSettings{
			Mux: mux, Middleware: []belfry.Middleware{m.Middleware()},
			Queues: []belfry.QueueWorker{{Name: belfry.DefaultQueue, Concurrency: 2}},
		})
		m.Watch(w)
		for range 3 {
			if _, err := c.Schedule(t.Context(), "k", nil); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(5 * time.Second)
		held, _ := m.value("belfry_leases_held")
		if held < 2 || held > 3 {
			t.Errorf("%v leases are held, want the two that run and at most one more", held)
		}
		m.want(2, "belfry_leases_running")
		m.want(2, "belfry_deliveries_in_flight", "target", "handler")
		m.want(1, "belfry_queues_known")
		m.want(0, "belfry_leases_lost_total")
		close(release)
		time.Sleep(5 * time.Second)
		m.want(0, "belfry_leases_held")
		m.want(3, "belfry_attempts_total", "result", "delivered", "kind", "k", "target", "handler")
		m.want(3, "belfry_settlements_total", "result", "done")
		m.want(3, "belfry_messages_claimed_total")
	})
}
