package memstore_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/belfryhq/belfry/store"
	"github.com/belfryhq/belfry/store/memstore"
)

// crowd puts n messages with the kind, in batches.
func crowd(t *testing.T, s *memstore.Store, kind string, n int) {
	t.Helper()
	messages := make([]store.Message, n)
	for i := range messages {
		messages[i] = store.Message{Queue: "q", ID: fmt.Sprintf("%s%06d", kind, i), Kind: kind, FireAt: after(time.Duration(i%97) * time.Second)}
	}
	put(t, s, messages...)
}

func TestScansMeetWhatDoesNotChangeExactlyOnce(t *testing.T) {
	s := memstore.New()
	const still = 10_000 // more than one stretch
	crowd(t, s, "still", still)
	stop := make(chan struct{})
	var churn sync.WaitGroup
	for i := range 2 {
		churn.Go(func() {
			for round := 0; ; round++ {
				select {
				case <-stop:
					return
				default:
				}
				turnOver(t, s, fmt.Sprintf("churn%d.%d", i, round))
			}
		})
	}
	for range 5 {
		if n, err := s.Count(t.Context(), store.Query{Kind: "still"}); err != nil || n != still {
			t.Errorf("counted %d of %d messages: %v", n, still, err)
		}
		seen := map[string]bool{}
		for query := (store.Query{Kind: "still", Order: store.ByFireAt, Limit: 3000}); ; {
			page, err := s.List(t.Context(), query)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range page.Messages {
				if seen[m.ID] {
					t.Fatalf("%s was listed twice", m.ID)
				}
				seen[m.ID] = true
			}
			if query.Cursor = page.Next; query.Cursor == "" {
				break
			}
		}
		if len(seen) != still {
			t.Errorf("listed %d of %d messages", len(seen), still)
		}
	}
	close(stop)
	churn.Wait()
}

// turnOver puts some messages and ends them.
func turnOver(t *testing.T, s *memstore.Store, prefix string) {
	messages := make([]store.Message, 50)
	keys := make([]store.Key, len(messages))
	for i := range messages {
		messages[i] = store.Message{Queue: "q", ID: fmt.Sprint(prefix, i), Kind: "churn", FireAt: epoch}
		keys[i] = messages[i].Key()
	}
	if _, err := s.Put(t.Context(), epoch, messages, 0); err != nil {
		t.Error(err)
	}
	claimed, err := s.Claim(t.Context(), store.Claim{Now: epoch, Until: after(time.Minute), Keys: keys})
	if err != nil {
		t.Error(err)
	}
	var settlements []store.Settlement
	for _, m := range claimed.Messages {
		settlements = append(settlements, store.Settlement{Token: m.Token(), Outcome: store.OutcomeDone})
	}
	if _, err := s.Settle(t.Context(), epoch, settlements); err != nil {
		t.Error(err)
	}
}

// canceledLater is a context that ends when it has been asked a few times.
type canceledLater struct {
	context.Context
	asked int
}

func (c *canceledLater) Err() error {
	if c.asked++; c.asked > 2 {
		return context.Canceled
	}
	return nil
}

func TestALongScanEndsWithItsContext(t *testing.T) {
	s := memstore.New()
	crowd(t, s, "k", 20_000)
	if _, err := s.List(&canceledLater{Context: t.Context()}, store.Query{}); !errors.Is(err, context.Canceled) {
		t.Errorf("List gave %v, want context.Canceled", err)
	}
	if _, err := s.Count(&canceledLater{Context: t.Context()}, store.Query{Kind: "k"}); !errors.Is(err, context.Canceled) {
		t.Errorf("Count gave %v, want context.Canceled", err)
	}
	put(t, s, store.Message{Queue: "q", ID: "after", FireAt: epoch}) // the store is not left locked
}
