package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/belfryhq/belfry/store"
	"github.com/belfryhq/belfry/store/memstore"
	"github.com/belfryhq/belfry/telemetry"
)

// slow is a store whose reads are counted, take their time and may fail.
type slow struct {
	store.Store
	queues, counts         int
	queuesTake, countsTake time.Duration
	err                    error
}

func (s *slow) Queues(ctx context.Context, window store.Window) ([]store.QueueHint, error) {
	s.queues++
	if err := s.rest(ctx, s.queuesTake); err != nil {
		return nil, err
	}
	return s.Store.Queues(ctx, window)
}

func (s *slow) Count(ctx context.Context, query store.Query) (int64, error) {
	s.counts++
	if err := s.rest(ctx, s.countsTake); err != nil {
		return 0, err
	}
	return s.Store.Count(ctx, query)
}

func (s *slow) rest(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return s.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// waiting returns a store with messages that came due this long ago, one in each queue.
func waiting(t *testing.T, since ...time.Duration) store.Store {
	t.Helper()
	s := memstore.New()
	now := time.Now()
	for i, d := range since {
		m := message("a")
		m.Queue, m.FireAt = fmt.Sprint("q", i), store.Ceil(now.Add(-d))
		if _, err := s.Put(t.Context(), now, []store.Message{m}, 0); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func TestShowsTheBacklog(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newScraped(t, telemetry.MetricsSettings{})
		s := m.Store(waiting(t, 10*time.Minute, 2*time.Second, -time.Hour))
		done := message("done")
		done.State, done.FinishedAt, done.PurgeAt = store.Done, epoch, store.Never
		if _, err := s.Put(t.Context(), time.Now(), []store.Message{done}, 0); err != nil {
			t.Fatal(err)
		}
		m.want(2, "belfry_queues_due")
		m.want(600, "belfry_oldest_due_seconds")
		m.want(2, "belfry_messages_due")
		m.want(1, "belfry_messages_overdue")
		m.want(3, "belfry_messages", "state", "scheduled")
		m.want(0, "belfry_messages", "state", "leased")
		m.want(1, "belfry_messages", "state", "done")
	})
}

func TestNothingDueIsZeroOld(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newScraped(t, telemetry.MetricsSettings{})
		m.Store(waiting(t, -time.Hour))
		m.want(0, "belfry_queues_due")
		if age, known := m.value("belfry_oldest_due_seconds"); age != 0 || !known {
			t.Errorf("oldest due: %v, %v, want 0", age, known)
		}
	})
}

func TestAddsUpStores(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newScraped(t, telemetry.MetricsSettings{})
		m.Store(waiting(t, time.Minute))
		m.Store(waiting(t, time.Hour, time.Second))
		m.want(3, "belfry_queues_due")
		m.want(3, "belfry_messages_due")
		m.want(3600, "belfry_oldest_due_seconds")
	})
}

func TestAsksNoMoreOftenThanSet(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newScraped(t, telemetry.MetricsSettings{BacklogEvery: 5 * time.Second, CountEvery: 30 * time.Second})
		s := &slow{Store: waiting(t, time.Minute)}
		m.Store(s)
		for range 61 { // a scrape each second, through one minute
			m.gather()
			time.Sleep(time.Second)
		}
		if s.queues != 13 || s.counts != 3*7 {
			t.Errorf("asked %d times for queues and %d for counts, want 13 and 21", s.queues, s.counts)
		}
	})
}

func TestAsksRarelyForWhatTakesLong(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newScraped(t, telemetry.MetricsSettings{ScrapeBudget: time.Hour})
		s := &slow{Store: waiting(t, time.Minute), countsTake: 2 * time.Second}
		m.Store(s)
		start := time.Now()
		for time.Since(start) < 1000*time.Second {
			m.gather()
			time.Sleep(time.Second)
		}
		if spent := time.Duration(s.counts/7) * s.countsTake; spent > 1100*time.Second/50 {
			t.Errorf("each count took %v of 1000 s, more than a fiftieth", spent)
		}
		m.want(1, "belfry_messages_due")
	})
}

func TestAScrapeKeepsWithinItsBudget(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newScraped(t, telemetry.MetricsSettings{ScrapeBudget: 2 * time.Second})
		s := &slow{Store: waiting(t, time.Minute), countsTake: time.Hour}
		m.Store(s)
		for scrape := range 10 {
			start := time.Now()
			m.gather()
			if took := time.Since(start); took > 2*time.Second {
				t.Fatalf("scrape %d took %v", scrape, took)
			}
			m.want(1, "belfry_queues_due") // what is quick is not delayed by what is slow
			time.Sleep(15 * time.Second)
		}
		if _, known := m.value("belfry_messages_due"); known {
			t.Error("a count that never came is shown")
		}
	})
}

func TestEveryQuestionGetsItsTurn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newScraped(t, telemetry.MetricsSettings{ScrapeBudget: 2 * time.Second, CountEvery: time.Second})
		s := &slow{Store: waiting(t, time.Minute), countsTake: 1500 * time.Millisecond}
		m.Store(s)
		for range 10 { // one count fits into a scrape
			m.gather()
			time.Sleep(time.Second)
		}
		for _, state := range []string{"scheduled", "leased", "done", "dead", "canceled"} {
			if _, known := m.value("belfry_messages", "state", state); !known {
				t.Errorf("messages that are %s were never counted", state)
			}
		}
	})
}

func TestAnOutageIsAGapNotAZero(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newScraped(t, telemetry.MetricsSettings{})
		s := &slow{Store: waiting(t, time.Minute)}
		m.Store(s)
		m.want(1, "belfry_queues_due")
		s.err = errors.New("no connection")
		time.Sleep(time.Minute)
		for _, name := range []string{"belfry_queues_due", "belfry_oldest_due_seconds", "belfry_messages_due", "belfry_messages"} {
			if value, known := m.value(name); known {
				t.Errorf("%s = %v while the store is out", name, value)
			}
		}
		m.want(1, "belfry_store_errors_total", "op", "queues", "class", "other")
		s.err = nil
		time.Sleep(time.Minute)
		m.want(1, "belfry_queues_due")
	})
}

func TestBacklogCanBeSwitchedOff(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newScraped(t, telemetry.MetricsSettings{BacklogEvery: -1, CountEvery: -1})
		s := &slow{Store: waiting(t, time.Minute)}
		m.Store(s)
		m.gather()
		if s.queues+s.counts != 0 {
			t.Errorf("asked %d times", s.queues+s.counts)
		}
	})
}

func TestReadsQueuesInPages(t *testing.T) {
	t.Parallel()
	m := newScraped(t, telemetry.MetricsSettings{CountEvery: -1})
	s := memstore.New()
	now := time.Now()
	messages := make([]store.Message, 10_001)
	for i := range messages {
		messages[i] = message("a")
		messages[i].Queue, messages[i].FireAt = fmt.Sprintf("q%05d", i), store.Ceil(now.Add(-time.Minute))
	}
	if _, err := s.Put(t.Context(), now, messages, 0); err != nil {
		t.Fatal(err)
	}
	m.Store(s)
	m.want(10_001, "belfry_queues_due")
}
