package belfry_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfryhq/belfry"
	"github.com/belfryhq/belfry/store"
	"github.com/belfryhq/belfry/store/memstore"
)

func TestEveryMessageFiresAtItsInstant(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := running(t, belfry.WorkerSettings{})
		var got record
		e.mux.HandleFunc("k", got.handle)
		random := rand.New(rand.NewPCG(1, 2))
		fire := map[string]time.Time{}
		for range 500 {
			m := e.schedule("k", nil, belfry.In(time.Duration(random.Int64N(int64(time.Hour)))))
			fire[m.ID] = m.FireAt
		}
		pass(time.Hour + time.Second)
		if got.count() != 500 {
			t.Fatalf("%d of 500 messages were delivered", got.count())
		}
		for i, id := range got.ids {
			if late := got.times[i].Sub(fire[id]); late != 0 {
				t.Errorf("message %d was delivered %v after its instant", i, late)
			}
		}
	})
}

func TestAnInstantBelowTheMillisecondIsRoundedUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := running(t, belfry.WorkerSettings{})
		var got record
		e.mux.HandleFunc("k", got.handle)
		at := time.Now().Add(time.Second + 1)
		e.schedule("k", nil, belfry.At(at))
		pass(2 * time.Second)
		if early := at.Sub(got.times[0]); early > 0 {
			t.Errorf("delivered %v early", early)
		}
		if late := got.times[0].Sub(at); late >= time.Millisecond {
			t.Errorf("delivered %v late", late)
		}
	})
}

func TestAnEarlierMessageWakesASleepingEngine(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := running(t, belfry.WorkerSettings{})
		var got record
		e.mux.HandleFunc("k", got.handle)
		e.schedule("k", nil, belfry.In(time.Hour), belfry.ID("late"))
		pass(10*time.Minute + 123*time.Millisecond)
		early := e.schedule("k", nil, belfry.In(37*time.Millisecond), belfry.ID("early"))
		pass(time.Minute)
		if got.count() != 1 || got.ids[0] != "early" || !got.times[0].Equal(early.FireAt) {
			t.Fatalf("delivered %v at %v, want early at %v", got.ids, got.times, early.FireAt)
		}
	})
}

func TestAProducerWithoutAWorkerWakesTheWorkersOfOthers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		e := newEngine(t, s, belfry.WorkerSettings{}).start()
		var got record
		e.mux.HandleFunc("k", got.handle)
		producer := belfry.New(s, belfry.Settings{Logger: quiet})
		defer producer.Close()
		pass(10 * time.Second)
		for _, delay := range []time.Duration{0, 50 * time.Millisecond, 7 * time.Second, 11 * time.Second, time.Minute} {
			m, err := producer.Schedule(t.Context(), "k", nil, belfry.In(delay))
			if err != nil {
				t.Fatal(err)
			}
			before := got.count()
			pass(delay + 10*time.Millisecond)
			synctest.Wait()
			if got.count() != before+1 || !got.times[before].Equal(m.FireAt) {
				t.Errorf("a message due in %v was not delivered at its instant: %d deliveries", delay, got.count()-before)
			}
		}
	})
}

func TestWithoutWakeUpsTheSafetyScanFindsWhatOthersPut(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		e := newEngine(t, struct{ store.Store }{s}, belfry.WorkerSettings{}).start() // hides the Waker
		var got record
		e.mux.HandleFunc("k", got.handle)
		producer := belfry.New(struct{ store.Store }{s}, belfry.Settings{Logger: quiet})
		for _, delay := range []time.Duration{0, 3 * time.Second, 10 * time.Second} {
			m, err := producer.Schedule(t.Context(), "k", nil, belfry.In(delay))
			if err != nil {
				t.Fatal(err)
			}
			before := got.count()
			pass(delay + 1200*time.Millisecond)
			if got.count() != before+1 {
				t.Fatalf("a message due in %v was not delivered", delay)
			}
			if late := got.times[before].Sub(m.FireAt); delay > 2*time.Second && late != 0 || late > 1200*time.Millisecond {
				t.Errorf("a message due in %v was delivered %v late", delay, late)
			}
		}
	})
}

func TestAThousandMessagesOfOneMillisecondAreDeliveredOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := running(t, belfry.WorkerSettings{})
		var got record
		e.mux.HandleFunc("k", got.handle)
		at := time.Now().Add(time.Minute)
		for i := range 1000 {
			e.schedule("k", nil, belfry.At(at), belfry.ID(fmt.Sprint(i)))
		}
		pass(2 * time.Minute)
		seen := map[string]bool{}
		for i, id := range got.ids {
			if seen[id] {
				t.Errorf("message %s was delivered twice", id)
			}
			seen[id] = true
			if got.times[i].Before(at) {
				t.Errorf("message %s was early", id)
			}
		}
		if len(seen) != 1000 {
			t.Errorf("%d of 1000 messages were delivered", len(seen))
		}
	})
}

func TestDueMessagesAreDeliveredByPriorityThenInstant(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEngine(t, memstore.New(), belfry.WorkerSettings{
			Queues: []belfry.QueueWorker{{Name: belfry.DefaultQueue, Concurrency: 1}},
		})
		var got record
		e.mux.HandleFunc("k", got.handle)
		now := time.Now()
		for i, m := range []struct {
			id       string
			priority int32
			ago      time.Duration
		}{{"c", 0, 1}, {"e", 5, 9}, {"b", 0, 3}, {"d", 5, 10}, {"a", -1, 0}} {
			_ = i
			e.schedule("k", nil, belfry.ID(m.id), belfry.Priority(m.priority), belfry.At(now.Add(-m.ago*time.Second)))
		}
		e.start()
		pass(time.Second)
		if fmt.Sprint(got.ids) != "[a b c d e]" {
			t.Errorf("delivered in the order %v", got.ids)
		}
	})
}

func TestOverdueMessagesAreDeliveredAtStart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEngine(t, memstore.New(), belfry.WorkerSettings{})
		var got record
		e.mux.HandleFunc("k", got.handle)
		for range 50 {
			e.schedule("k", nil)
		}
		pass(2 * time.Minute)
		started := time.Now()
		e.start()
		pass(time.Second)
		if got.count() != 50 || got.times[49].Sub(started) > 0 {
			t.Errorf("%d of 50 overdue messages were delivered", got.count())
		}
	})
}

func TestAStoresClockDecides(t *testing.T) {
	for _, skew := range []time.Duration{-30 * time.Second, 200 * time.Millisecond, 3 * time.Hour} {
		t.Run(fmt.Sprintf("the store is %v ahead", skew), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := newFaulty()
				s.skew = skew
				e := newEngine(t, s, belfry.WorkerSettings{}).start()
				var got record
				e.mux.HandleFunc("k", got.handle)
				e.schedule("k", nil) // so that a claim brings the store's clock
				pass(time.Minute)
				at := time.Now().Add(time.Minute)
				e.schedule("k", nil, belfry.At(at))
				pass(2 * time.Minute)
				if got.count() != 2 {
					t.Fatalf("%d deliveries", got.count())
				}
				want := at.Add(-min(skew, 250*time.Millisecond)) // a clock ahead is trusted up to the tolerance
				if off := got.times[1].Sub(want); off < 0 || off > time.Millisecond {
					t.Errorf("delivered %v from the instant by the engine's clock", off)
				}
			})
		})
	}
}

func TestAnIdleEngineAsksTheStoreAtMostTwiceASecond(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newFaulty()
		e := newEngine(t, s, belfry.WorkerSettings{}).start()
		var got record
		e.mux.HandleFunc("k", got.handle)
		pass(10 * time.Second)
		before := s.total()
		pass(100 * time.Second)
		idle := s.total() - before
		if idle > 200 {
			t.Errorf("%d calls in 100 idle seconds", idle)
		}
		before, own := s.total(), s.ofMessages()
		e.schedule("k", nil, belfry.In(10*time.Second))
		pass(100 * time.Second)
		if got.count() != 1 {
			t.Fatal("the message was not delivered")
		}
		if extra := s.ofMessages() - own; extra > 3 {
			t.Errorf("one message due in 10 s cost %d calls", extra)
		}
		if all := s.total() - before; all > 203 {
			t.Errorf("%d calls in 100 seconds with one message", all)
		}
	})
}

func TestRetriesOverHoursComeAtTheirInstants(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := running(t, belfry.WorkerSettings{})
		var got record
		e.mux.HandleFunc("k", got.failing(errBoom))
		delays := []time.Duration{time.Minute, time.Hour, 3 * time.Hour, 11 * time.Hour}
		m := e.schedule("k", nil, belfry.Retry(belfry.RetryPolicy{
			MaxAttempts: 5, Backoff: store.List, Delays: delays, Jitter: -1,
		}))
		pass(16 * time.Hour)
		if got.count() != 5 {
			t.Fatalf("%d attempts", got.count())
		}
		for i, delay := range delays {
			if gap := got.times[i+1].Sub(got.times[i]); gap != delay {
				t.Errorf("retry %d came after %v, not %v", i+1, gap, delay)
			}
		}
		dead := e.get(m)
		if dead.State != belfry.Dead || dead.Attempts != 5 || dead.LastError != "boom" || len(dead.History) != 5 {
			t.Errorf("ended %v after %d attempts with %q and %d records", dead.State, dead.Attempts, dead.LastError, len(dead.History))
		}
	})
}

func TestRetryAfterAndSnoozeAreHonoured(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := running(t, belfry.WorkerSettings{})
		var got record
		answers := []error{belfry.Snooze(time.Hour), belfry.RetryAfter(errBoom, 5*time.Minute), nil}
		e.mux.HandleFunc("k", func(ctx context.Context, d belfry.Delivery) error {
			_ = got.handle(ctx, d)
			return answers[got.count()-1]
		})
		m := e.schedule("k", nil, belfry.MaxAttempts(2))
		pass(3 * time.Hour)
		if got.count() != 3 {
			t.Fatalf("%d deliveries", got.count())
		}
		if gap := got.times[1].Sub(got.times[0]); gap != time.Hour {
			t.Errorf("snoozed for %v", gap)
		}
		if gap := got.times[2].Sub(got.times[1]); gap != 5*time.Minute {
			t.Errorf("tried again after %v", gap)
		}
		if done := e.get(m); done.State != belfry.Done || done.Attempts != 2 || got.all[1].Attempt != 1 {
			t.Errorf("%v after %d attempts; the second delivery was attempt %d", done.State, done.Attempts, got.all[1].Attempt)
		}
	})
}
