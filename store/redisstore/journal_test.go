package redisstore_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/belfryhq/belfry/internal/testserver"
	"github.com/belfryhq/belfry/store"
	"github.com/belfryhq/belfry/store/redisstore"
)

// New messages wait in a journal until somebody lists. It must stay short, and lists must see what is in it.
func TestTheJournalOfNewMessagesIsBounded(t *testing.T) {
	t.Parallel()
	url := testserver.Redis(t)
	s, raw := openURL(t, url, redisstore.Settings{}), rawClient(t, url)
	_, prefix, _ := strings.Cut(url, "prefix=")
	const calls = 2500
	for i := range calls {
		mustPut(t, s, start, message("q", fmt.Sprintf("m%04d", i), start))
	}
	if n := raw.LLen(t.Context(), prefix+"{:q}:j").Val(); n == 0 || n > 2048 {
		t.Errorf("the journal has %d entries", n)
	}
	for _, m := range claimed(t, s, start, "q", 100) {
		mustSettle(t, s, start, store.Settlement{Token: m.Token(), Outcome: store.OutcomeDone})
	}
	query, seen := store.Query{Queue: "q", Limit: 70, Order: store.ByFireAt}, 0
	for {
		page, err := s.List(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range page.Messages {
			if want := fmt.Sprintf("m%04d", 100+seen); m.ID != want {
				t.Fatalf("message %d of the list is %s, want %s", seen, m.ID, want)
			}
			seen++
		}
		if query.Cursor = page.Next; query.Cursor == "" {
			break
		}
	}
	if seen != calls-100 {
		t.Errorf("%d messages are listed, want %d", seen, calls-100)
	}
	if n := raw.LLen(t.Context(), prefix+"{:q}:j").Val(); n != 0 {
		t.Errorf("after a list the journal has %d entries", n)
	}
}

// A queue that has had many messages and has none leaves next to nothing behind.
func TestAnEmptiedQueueLeavesNoMessagesBehind(t *testing.T) {
	t.Parallel()
	url := testserver.Redis(t)
	s, raw := openURL(t, url, redisstore.Settings{}), rawClient(t, url)
	_, prefix, _ := strings.Cut(url, "prefix=")
	for i := range 5 {
		m := message("q", fmt.Sprint(i), start)
		m.Group, m.Parent, m.DedupKey, m.Priority = "g", "p", fmt.Sprint(i), int32(i)
		if i > 0 {
			m.Gate = &store.Gate{IDs: []string{"0"}}
		}
		mustPut(t, s, start, m)
	}
	total(t, s, store.Query{Queue: "q", Kind: "kind"})
	for range 2 {
		for _, m := range claimed(t, s, start, "q", 10) {
			mustSettle(t, s, start, store.Settlement{Token: m.Token(), Outcome: store.OutcomeRetry, At: start, Attempt: &store.Attempt{Number: 1}})
		}
	}
	for range 2 {
		for _, m := range claimed(t, s, start, "q", 10) {
			mustSettle(t, s, start, store.Settlement{Token: m.Token(), Outcome: store.OutcomeDone})
		}
	}
	if n, err := s.Purge(t.Context(), start.Add(2*store.TraceTTL), 100); err != nil || n != 5 {
		t.Fatalf("Purge removes %d traces, %v", n, err)
	}
	keys, err := raw.Keys(t.Context(), prefix+"{:q}*").Result()
	if err != nil || len(keys) != 1 || keys[0] != prefix+"{:q}:h" {
		t.Errorf("left are %q, %v", keys, err)
	}
	if fields := raw.HKeys(t.Context(), prefix+"{:q}:h").Val(); len(fields) != 2 {
		t.Errorf("left are the fields %q", fields)
	}
}
