package memstore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/belfryhq/belfry/store"
	"github.com/belfryhq/belfry/store/memstore"
)

// epoch is an arbitrary whole millisecond that the tests count from.
var epoch = time.UnixMilli(1_800_000_000_000).UTC()

func after(d time.Duration) time.Time { return epoch.Add(d) }

func put(t *testing.T, s *memstore.Store, messages ...store.Message) []store.PutResult {
	t.Helper()
	results, err := s.Put(t.Context(), epoch, messages, 0)
	if err != nil {
		t.Fatal(err)
	}
	return results
}

func claim(t *testing.T, s *memstore.Store, now time.Time, limit int) []store.Message {
	t.Helper()
	claimed, err := s.Claim(t.Context(), store.Claim{
		Now: now, Until: now.Add(30 * time.Second), Owner: "n1", Epoch: 1,
		Queues: []store.QueueClaim{{Queue: "q", Limit: limit}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return claimed.Messages
}

func TestClaimsInOrderAndSettles(t *testing.T) {
	s := memstore.New()
	put(t, s,
		store.Message{Queue: "q", ID: "c", FireAt: after(1)},
		store.Message{Queue: "q", ID: "b", FireAt: after(0), Priority: 1},
		store.Message{Queue: "q", ID: "a", FireAt: after(0), Priority: 1},
		store.Message{Queue: "q", ID: "later", FireAt: after(time.Minute)},
	)
	got := claim(t, s, after(time.Millisecond), 10)
	want := []string{"c", "a", "b"}
	if len(got) != len(want) {
		t.Fatalf("claimed %d messages, want %d", len(got), len(want))
	}
	var settlements []store.Settlement
	for i, m := range got {
		if m.ID != want[i] {
			t.Errorf("claim %d is %q, want %q", i, m.ID, want[i])
		}
		settlements = append(settlements, store.Settlement{Token: m.Token(), Outcome: store.OutcomeDone})
	}
	errs, err := s.Settle(t.Context(), after(time.Second), append(settlements, settlements[0]))
	if err != nil {
		t.Fatal(err)
	}
	for i, err := range errs[:3] {
		if err != nil {
			t.Errorf("settlement %d: %v", i, err)
		}
	}
	if !errors.Is(errs[3], store.ErrLeaseLost) {
		t.Errorf("a token settled twice yields %v, want ErrLeaseLost", errs[3])
	}
	if n, _ := s.Count(t.Context(), store.Query{}); n != 1 {
		t.Errorf("%d messages are left, want 1", n)
	}
}

func TestCanceledContextChangesNothing(t *testing.T) {
	s := memstore.New()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Put(ctx, epoch, []store.Message{{Queue: "q", ID: "a", FireAt: epoch}}, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("put with a canceled context: %v, want context.Canceled", err)
	}
	if n, _ := s.Count(t.Context(), store.Query{}); n != 0 {
		t.Errorf("a canceled put stored %d messages", n)
	}
}
