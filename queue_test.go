package belfry_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belfryhq/belfry"
	"github.com/belfryhq/belfry/store"
	"github.com/belfryhq/belfry/store/memstore"
	"github.com/belfryhq/belfry/target"
)

// gauge measures how many deliveries are under way at once.
type gauge struct {
	mu        sync.Mutex
	now, most int
}

func (g *gauge) during(d time.Duration) {
	g.mu.Lock()
	g.now++
	g.most = max(g.most, g.now)
	g.mu.Unlock()
	time.Sleep(d)
	g.mu.Lock()
	g.now--
	g.mu.Unlock()
}

func TestConcurrencyIsBoundedPerQueue(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := running(t, belfry.WorkerSettings{Queues: []belfry.QueueWorker{
			{Name: "narrow", Concurrency: 3}, {Name: "wide*", Concurrency: 20},
		}})
		gauges := map[string]*gauge{"narrow": {}, "wide/1": {}, "wide/2": {}}
		e.mux.HandleFunc("k", func(_ context.Context, d belfry.Delivery) error {
			gauges[d.Queue].during(time.Second)
			return nil
		})
		for queue := range gauges {
			for range 100 {
				e.schedule("k", nil, belfry.Queue(queue))
			}
		}
		pass(time.Minute)
		for queue, want := range map[string]int{"narrow": 3, "wide/1": 20, "wide/2": 20} {
			if got := gauges[queue].most; got != want {
				t.Errorf("%d deliveries of %s at once, want %d", got, queue, want)
			}
		}
	})
}

func TestABacklogInOneQueueDelaysNoOther(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := running(t, belfry.WorkerSettings{Queues: []belfry.QueueWorker{{Name: "*", Concurrency: 10}}})
		e.mux.HandleFunc("slow", func(context.Context, belfry.Delivery) error { time.Sleep(time.Second); return nil })
		var got record
		e.mux.HandleFunc("quick", got.handle)
		for range 5000 {
			e.schedule("slow", nil, belfry.Queue("backlog"))
		}
		pass(10 * time.Second)
		for i := range 100 {
			m := e.schedule("quick", nil, belfry.Queue(fmt.Sprint("other", i)), belfry.In(time.Second))
			pass(1100 * time.Millisecond)
			if got.count() != i+1 || !got.times[i].Equal(m.FireAt) {
				t.Fatalf("message %d was not delivered at its instant", i)
			}
		}
	})
}

func TestASlowDestinationDelaysNoOther(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var got record
		e := running(t, belfry.WorkerSettings{
			Targets: map[string]belfry.Target{"web": hosts{func(ctx context.Context, d belfry.Delivery) error {
				if strings.HasPrefix(d.Address, "tarpit") {
					time.Sleep(30 * time.Second)
					return errBoom
				}
				return got.handle(ctx, d)
			}}},
		})
		for i := range 4000 {
			e.schedule("", nil, belfry.To("web", fmt.Sprint("tarpit", i%4)), belfry.MaxAttempts(1))
		}
		pass(5 * time.Second)
		for i := range 60 {
			m := e.schedule("", nil, belfry.To("web", fmt.Sprint("healthy", i%3)), belfry.In(300*time.Millisecond))
			pass(2 * time.Second)
			if got.count() != i+1 {
				t.Fatalf("message %d to a healthy destination was not delivered within 2 s", i)
			}
			if late := got.times[i].Sub(m.FireAt); late > 500*time.Millisecond {
				t.Errorf("message %d to a healthy destination was %v late", i, late)
			}
		}
	})
}

// hosts is a target whose lane is its address.
type hosts struct{ target.Func }

func (hosts) Lane(d target.Delivery) string { return d.Address }

func TestAPausedQueueIsNotDeliveredUntilItIsResumed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := running(t, belfry.WorkerSettings{})
		var got record
		e.mux.HandleFunc("k", got.handle)
		if err := e.Pause(t.Context(), belfry.DefaultQueue, "maintenance"); err != nil {
			t.Fatal(err)
		}
		pass(2 * time.Second)
		e.schedule("k", nil)
		pass(time.Minute)
		if got.count() != 0 {
			t.Fatal("a paused queue was delivered from")
		}
		if s, err := e.QueueSettings(t.Context(), belfry.DefaultQueue); err != nil || !s.Paused || s.Note != "maintenance" {
			t.Errorf("the settings are %+v, %v", s, err)
		}
		if err := e.Resume(t.Context(), belfry.DefaultQueue); err != nil {
			t.Fatal(err)
		}
		pass(2 * time.Second)
		if got.count() != 1 {
			t.Error("a resumed queue was not delivered from")
		}
	})
}

func TestAQueuesLimitsHoldOverAllWorkers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		var g gauge
		var got record
		settings := belfry.WorkerSettings{Mux: belfry.NewMux()}
		settings.Mux.HandleFunc("k", func(ctx context.Context, d belfry.Delivery) error {
			g.during(100 * time.Millisecond)
			return got.handle(ctx, d)
		})
		a, b := newEngine(t, s, settings), newEngine(t, s, settings)
		if err := a.SetQueue(t.Context(), belfry.DefaultQueue, func(q *belfry.QueueSettings) { q.Concurrency = 4 }); err != nil {
			t.Fatal(err)
		}
		a.start()
		b.start()
		for range 200 {
			a.schedule("k", nil)
		}
		pass(time.Minute)
		if g.most != 4 || got.count() != 200 {
			t.Errorf("%d at once, %d delivered", g.most, got.count())
		}
		if err := a.SetQueue(t.Context(), belfry.DefaultQueue, func(q *belfry.QueueSettings) {
			q.Concurrency, q.Rate, q.RatePer = 0, 100, time.Second
		}); err != nil {
			t.Fatal(err)
		}
		pass(2 * time.Second)
		began := time.Now()
		for range 1000 {
			a.schedule("k", nil)
		}
		pass(time.Minute)
		if got.count() != 1200 {
			t.Fatalf("%d of 1200 delivered", got.count())
		}
		times := got.times[200:]
		for i := 106; i < len(times); i++ {
			if span := times[i].Sub(times[i-106]); span < time.Second {
				t.Fatalf("106 deliveries within %v", span)
			}
		}
		if took := times[999].Sub(began); took > 13*time.Second {
			t.Errorf("1000 messages at 100 per second took %v", took)
		}
	})
}

func TestAnUnknownKindWaitsForAWorkerThatKnowsIt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		ignorant := newEngine(t, s, belfry.WorkerSettings{}).start()
		m := ignorant.schedule("k", nil, belfry.MaxAttempts(1))
		pass(time.Minute)
		if got := ignorant.get(m); !got.State.Live() || got.Attempts != 0 || got.Claims > 1 {
			t.Fatalf("the message is %v with %d attempts and %d claims", got.State, got.Attempts, got.Claims)
		}
		knowing := newEngine(t, s, belfry.WorkerSettings{})
		var got record
		knowing.mux.HandleFunc("k", got.handle)
		if err := ignorant.stopped(); err != nil {
			t.Fatal(err)
		}
		knowing.start()
		pass(time.Minute)
		if got.count() != 1 {
			t.Errorf("%d deliveries", got.count())
		}
	})
}

func TestAGateOpensWhenItsGroupIsFinished(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := running(t, belfry.WorkerSettings{})
		var order record
		e.mux.HandleFunc("member", func(ctx context.Context, d belfry.Delivery) error {
			_ = order.handle(ctx, d)
			if d.Attempt == 1 {
				return errBoom
			}
			return nil
		})
		e.mux.HandleFunc("finalizer", order.handle)
		for i := range 5 {
			e.schedule("member", nil, belfry.Group("g"), belfry.In(time.Duration(i)*time.Minute))
		}
		f := e.schedule("finalizer", nil, belfry.AfterGroup("g"), belfry.ID("last"))
		if got := e.get(f); got.Waits != 5 {
			t.Fatalf("the gate waits for %d messages", got.Waits)
		}
		pass(10 * time.Minute)
		if n := order.count(); n != 11 || order.ids[n-1] != "last" {
			t.Fatalf("%d deliveries, the last of %s", n, order.ids[n-1])
		}
		if gap := order.times[10].Sub(order.times[9]); gap > 100*time.Millisecond {
			t.Errorf("the gate opened %v after the last member finished", gap)
		}
	})
}

func TestADedupKeyAdmitsOneLiveMessage(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := running(t, belfry.WorkerSettings{})
		e.mux.HandleFunc("k", func(context.Context, belfry.Delivery) error { return nil })
		first := e.schedule("k", nil, belfry.DedupKey("a"), belfry.In(time.Second))
		var mu sync.Mutex
		var wait sync.WaitGroup
		for range 64 {
			wait.Go(func() {
				m, err := e.Schedule(t.Context(), "k", nil, belfry.DedupKey("a"))
				mu.Lock()
				defer mu.Unlock()
				if !errors.Is(err, belfry.ErrDuplicate) || m.ID != first.ID {
					t.Errorf("a second message with the key: %v, %v", m.ID, err)
				}
			})
		}
		wait.Wait()
		pass(time.Minute)
		e.schedule("k", nil, belfry.DedupKey("a"))
	})
}

func TestChangesOfAWaitingMessageTakeEffect(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := running(t, belfry.WorkerSettings{})
		var got record
		e.mux.HandleFunc("k", got.handle)
		ctx := t.Context()
		moved := e.schedule("k", nil, belfry.In(time.Hour))
		at := time.Now().Add(time.Minute)
		if _, err := e.Reschedule(ctx, moved.Queue, moved.ID, at); err != nil {
			t.Fatal(err)
		}
		canceled := e.schedule("k", nil, belfry.In(time.Second))
		for range 2 {
			if m, err := e.Cancel(ctx, canceled.Queue, canceled.ID); err != nil || m.State != belfry.Canceled {
				t.Fatalf("Cancel: %v, %v", m.State, err)
			}
		}
		edited := e.schedule("k", "old", belfry.In(2*time.Minute))
		updated, err := e.Update(ctx, edited.Queue, edited.ID, func(m *belfry.Message) error { m.Payload = []byte("new"); return nil })
		if err != nil || updated.Version <= edited.Version {
			t.Fatal(err)
		}
		removed := e.schedule("k", nil, belfry.In(3*time.Minute))
		if err := e.Remove(ctx, removed.Queue, removed.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Get(ctx, removed.Queue, removed.ID); !errors.Is(err, belfry.ErrNotFound) {
			t.Errorf("a removed message: %v", err)
		}
		pass(10 * time.Minute)
		if got.count() != 2 || got.ids[0] != moved.ID || !got.times[0].Equal(at.Truncate(0)) || string(got.all[1].Payload) != "new" {
			t.Errorf("delivered %v at %v", got.ids, got.times)
		}
		if _, err := e.Cancel(ctx, moved.Queue, moved.ID); !errors.Is(err, belfry.ErrFinished) {
			t.Errorf("Cancel of a finished message: %v", err)
		}
		if _, err := e.Revive(ctx, canceled.Queue, canceled.ID, time.Time{}); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		if got.count() != 3 {
			t.Error("a revived message was not delivered")
		}
	})
}

func TestACancelThatSaidYesIsNeverDelivered(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := running(t, belfry.WorkerSettings{})
		var got record
		e.mux.HandleFunc("k", got.handle)
		at := time.Now().Add(time.Second)
		var all []belfry.Message
		for range 500 {
			all = append(all, e.schedule("k", nil, belfry.At(at)))
		}
		canceled := map[string]bool{}
		for i, m := range all {
			time.Sleep(time.Duration(i%7) * time.Millisecond)
			_, err := e.Cancel(t.Context(), m.Queue, m.ID)
			switch {
			case err == nil:
				canceled[m.ID] = true
			case !errors.Is(err, belfry.ErrInFlight) && !errors.Is(err, belfry.ErrFinished):
				t.Fatal(err)
			}
		}
		pass(time.Minute)
		if len(canceled)+got.count() != 500 {
			t.Errorf("%d canceled and %d delivered of 500", len(canceled), got.count())
		}
		for _, id := range got.ids {
			if canceled[id] {
				t.Errorf("canceled message %s was delivered", id)
			}
		}
	})
}

func TestATypedKindCarriesItsPayload(t *testing.T) {
	bubble(t, func(t *testing.T) {
		type email struct{ To string }
		send := belfry.Define[email]("email.send", belfry.Queue("mail"), belfry.MaxAttempts(3))
		e := running(t, belfry.WorkerSettings{Queues: []belfry.QueueWorker{{Name: "mail"}}})
		var to []string
		send.Handle(e.mux, func(_ context.Context, _ belfry.Delivery, m email) error {
			to = append(to, m.To)
			return nil
		})
		if _, err := send.Schedule(t.Context(), e.Client, email{"ann@example.com"}, belfry.In(time.Second)); err != nil {
			t.Fatal(err)
		}
		bad := e.schedule("email.send", []byte("not json"), belfry.Queue("mail"))
		pass(time.Minute)
		if len(to) != 1 || to[0] != "ann@example.com" {
			t.Errorf("handled %v", to)
		}
		if got := e.get(bad); got.State != belfry.Dead || got.Attempts != 1 {
			t.Errorf("an unreadable payload: %v after %d attempts", got.State, got.Attempts)
		}
	})
}

func TestAnOutageDelaysAndLosesNothing(t *testing.T) {
	for _, op := range []string{"claim", "settle", "extend", "queues"} {
		t.Run("of "+op, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := newFaulty()
				e := newEngine(t, s, belfry.WorkerSettings{Queues: []belfry.QueueWorker{{Name: belfry.DefaultQueue, Concurrency: 10}}})
				var got record
				e.mux.HandleFunc("k", got.handle)
				e.start()
				s.fail(op, errBoom)
				for i := range 300 {
					e.schedule("k", nil, belfry.In(time.Duration(i)*100*time.Millisecond))
				}
				pass(20 * time.Second)
				if op == "settle" && got.count() > 30 {
					t.Errorf("%d deliveries although none could be settled", got.count())
				}
				s.fail(op, nil)
				healed := time.Now()
				pass(time.Minute)
				seen := map[string]int{}
				for _, id := range got.ids {
					seen[id]++
				}
				for id, n := range seen {
					if n > 1 {
						t.Errorf("message %s was delivered %d times", id, n)
					}
				}
				if len(seen) != 300 {
					t.Errorf("%d of 300 messages were delivered", len(seen))
				}
				if op == "claim" && got.times[0].Sub(healed) > 2*time.Second {
					t.Errorf("the first delivery came %v after the outage", got.times[0].Sub(healed))
				}
			})
		})
	}
}

func TestInvalidInputNamesFieldValueAndRemedy(t *testing.T) {
	c := belfry.New(memstore.New(), belfry.Settings{Logger: quiet})
	for name, draft := range map[string]belfry.Draft{
		"queue too long":   belfry.Compose("k", nil, belfry.Queue(string(make([]byte, 256)))),
		"id with NUL":      belfry.Compose("k", nil, belfry.ID("a\x00b")),
		"id not UTF-8":     belfry.Compose("k", nil, belfry.ID("\xff")),
		"year 10000":       belfry.Compose("k", nil, belfry.At(time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC))),
		"metadata no JSON": belfry.Compose("k", nil, belfry.Metadata([]byte("{"))),
		"negative timeout": belfry.Compose("k", nil, belfry.Timeout(-1)),
		"header not UTF-8": belfry.Compose("k", nil, belfry.Header("a", "\xff")),
		"bad backoff":      belfry.Compose("k", nil, belfry.Retry(belfry.RetryPolicy{Backoff: "quick"})),
		"payload":          belfry.Compose("k", make(chan int)),
	} {
		good := belfry.Compose("k", nil)
		if _, err := c.ScheduleAll(t.Context(), good, draft); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	if n, err := c.Count(t.Context(), store.Query{}); err != nil || n != 0 {
		t.Errorf("%d messages were stored although one of each call was refused", n)
	}
}

func TestFinishedMessagesAreRemovedWhenTheirTimeHasCome(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := running(t, belfry.WorkerSettings{})
		e.mux.HandleFunc("k", func(context.Context, belfry.Delivery) error { return nil })
		for range 1200 {
			e.schedule("k", nil, belfry.Keep(belfry.Retention{Done: time.Hour}))
		}
		forever := e.schedule("k", nil, belfry.Keep(belfry.Retention{Done: belfry.Forever}))
		pass(59 * time.Minute)
		if n, _ := e.Count(t.Context(), belfry.Query{}); n != 1201 {
			t.Errorf("%d messages are kept", n)
		}
		pass(2 * time.Minute)
		if n, _ := e.Count(t.Context(), belfry.Query{}); n != 1 || e.get(forever).State != belfry.Done {
			t.Errorf("%d messages are kept", n)
		}
	})
}

func TestAnUpdatedRetryPolicyIsResolvedAsOnAccept(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEngine(t, memstore.New(), belfry.WorkerSettings{})
		m := e.schedule("k", nil, belfry.In(time.Hour))
		edit := func(m *belfry.Message) error { m.Retry = belfry.RetryPolicy{MaxAttempts: 3}; return nil }
		got, err := e.Update(t.Context(), m.Queue, m.ID, edit)
		if err != nil {
			t.Fatal(err)
		}
		want := e.schedule("k", nil, belfry.In(time.Hour), belfry.MaxAttempts(3)).Retry
		want.MaxClaims = got.Retry.MaxClaims
		if !reflect.DeepEqual(got.Retry, want) {
			t.Errorf("the policy is %+v, want %+v", got.Retry, want)
		}
	})
}
