package redisstore_test

import (
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belfryhq/belfry/store"
)

var prefixes atomic.Int64

// prefix returns a prefix of keys that no other test has.
func prefix() string { return fmt.Sprintf("r%d_%d", os.Getpid(), prefixes.Add(1)) }

// plain returns a URL without what only a store understands.
func plain(url string) string {
	url, _, _ = strings.Cut(url, "?")
	return url
}

// start is the now of tests that need none in particular.
var start = time.Date(2031, 3, 4, 5, 6, 7, 0, time.UTC)

// message returns a message that is due at the instant.
func message(queue, id string, fire time.Time) store.Message {
	return store.Message{Queue: queue, ID: id, Kind: "kind", Payload: []byte(id), FireAt: fire}
}

// messages returns n messages of a queue.
func messages(queue string, n int, fire time.Time) []store.Message {
	ms := make([]store.Message, n)
	for i := range ms {
		ms[i] = message(queue, fmt.Sprintf("m%06d", i), fire)
	}
	return ms
}

// mustPut stores messages, all of which must be accepted.
func mustPut(t *testing.T, s store.Store, now time.Time, ms ...store.Message) {
	t.Helper()
	results, err := s.Put(t.Context(), now, ms, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range results {
		if r.Err != nil {
			t.Fatalf("put %q: %v", ms[i].ID, r.Err)
		}
	}
}

// claimed leases up to n messages of a queue for a minute.
func claimed(t *testing.T, s store.Store, now time.Time, queue string, n int) []store.Message {
	t.Helper()
	got, err := s.Claim(t.Context(), store.Claim{
		Now: now, Until: now.Add(time.Minute), Owner: "node", Epoch: 1, Queues: []store.QueueClaim{{Queue: queue, Limit: n}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return got.Messages
}

// mustSettle ends leases; all settlements must be accepted.
func mustSettle(t *testing.T, s store.Store, now time.Time, ss ...store.Settlement) {
	t.Helper()
	errs, err := s.Settle(t.Context(), now, ss)
	if err != nil {
		t.Fatal(err)
	}
	for i, err := range errs {
		if err != nil {
			t.Fatalf("settle %q: %v", ss[i].Token.ID, err)
		}
	}
}

// total counts what matches.
func total(t *testing.T, s store.Store, q store.Query) int64 {
	t.Helper()
	n, err := s.Count(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
