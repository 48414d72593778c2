package redisstore_test

import (
	"testing"
	"time"

	"github.com/belfryhq/belfry/internal/testserver"
	"github.com/belfryhq/belfry/store"
	"github.com/belfryhq/belfry/store/redisstore"
)

// A server whose memory is full refuses what needs more, as a whole, and takes what frees some.
func TestAFullServer(t *testing.T) {
	t.Parallel()
	server := testserver.StartRedis(t, "--appendonly", "no", "--maxmemory-policy", "noeviction")
	s, raw := openURL(t, server.URL, redisstore.Settings{}), rawClient(t, server.URL)
	grouped := messages("q", 6, start)
	for i := range grouped {
		grouped[i].Group = "g"
	}
	mustPut(t, s, start, grouped...)
	mustPut(t, s, start, messages("plain", 2, start)...)
	held, plain := claimed(t, s, start, "q", 3), claimed(t, s, start, "plain", 1)
	before := total(t, s, store.Query{Queue: "q", Group: "g"})
	full := func(limit string) {
		t.Helper()
		if err := raw.ConfigSet(t.Context(), "maxmemory", limit).Err(); err != nil {
			t.Fatal(err)
		}
	}
	full("100kb")
	if _, err := s.Put(t.Context(), start, []store.Message{message("q", "new", start)}, 0); err == nil {
		t.Error("a full server accepts")
	}
	if _, err := s.Claim(t.Context(), store.Claim{Now: start, Until: start.Add(time.Hour), Queues: []store.QueueClaim{{Queue: "q", Limit: 9}}}); err == nil {
		t.Error("a full server leases")
	}
	for _, st := range []store.Settlement{
		{Token: held[0].Token(), Outcome: store.OutcomeRetry, At: start.Add(time.Hour), Attempt: &store.Attempt{Number: 1}},
		{Token: held[1].Token(), Outcome: store.OutcomeDone, PurgeAt: store.Never},
	} {
		if _, err := s.Settle(t.Context(), start, []store.Settlement{st}); err == nil {
			t.Errorf("a full server settles as %s", st.Outcome.State())
		}
	}
	mustSettle(t, s, start, store.Settlement{Token: plain[0].Token(), Outcome: store.OutcomeDone})
	mustSettle(t, s, start, store.Settlement{Token: held[2].Token(), Outcome: store.OutcomeDone})

	full("0")
	if n := total(t, s, store.Query{Queue: "q", Group: "g"}); n != before-1 {
		t.Errorf("%d messages of the group are there, want %d", n, before-1)
	}
	mustSettle(t, s, start, store.Settlement{Token: held[0].Token(), Outcome: store.OutcomeRetry, At: start},
		store.Settlement{Token: held[1].Token(), Outcome: store.OutcomeDone})
	mustPut(t, s, start, message("q", "new", start))
	if n := len(claimed(t, s, start, "q", 9)); n != 5 {
		t.Errorf("%d messages are claimed, want 5", n)
	}
	if n := len(claimed(t, s, start, "plain", 9)); n != 1 {
		t.Errorf("%d plain messages are claimed, want 1", n)
	}
}
