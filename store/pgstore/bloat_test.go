package pgstore_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/belfryhq/belfry/internal/testserver"
	"github.com/belfryhq/belfry/store"
	"github.com/belfryhq/belfry/store/pgstore"
	"github.com/belfryhq/belfry/store/storetest"
)

// fullScale is whether tests of size use a million messages.
func fullScale() bool { return os.Getenv("BELFRY_SCALE") == "full" }

// openSlow opens stores that remember where claims begin, as they else do only on a server that cannot clean up.
func openSlow(t testing.TB) store.Store {
	s := open(t, testserver.Postgres(t), pgstore.Settings{})
	s.ClaimsAreSlow()
	return s
}

func TestStoreThatRemembersWhereClaimsBegin(t *testing.T) {
	t.Parallel()
	storetest.Run(t, openSlow, storetest.Options{Scale: storetest.Small})
}

func TestModelThatRemembersWhereClaimsBegin(t *testing.T) {
	t.Parallel()
	storetest.RunModel(t, openSlow, storetest.Options{Scale: storetest.Small})
}

// TestWhatAnotherProcessWritesInThePastIsFoundSoon checks that a claim now and then begins at the beginning.
func TestWhatAnotherProcessWritesInThePastIsFoundSoon(t *testing.T) {
	t.Parallel()
	address := testserver.Postgres(t)
	s, other := open(t, address, pgstore.Settings{}), open(t, address, pgstore.Settings{})
	s.ClaimsAreSlow()
	for range 3 {
		claim(t, s, "q", 1)
	}
	put(t, other, store.Message{Queue: "q", ID: "fresh", FireAt: now.Add(-time.Second), Priority: 0})
	put(t, other, store.Message{Queue: "q", ID: "old", FireAt: now.Add(-time.Hour), Priority: 7})
	var got []string
	for deadline := time.Now().Add(20 * time.Second); len(got) < 2 && time.Now().Before(deadline); {
		got = append(got, claim(t, s, "q", 10)...)
	}
	slices.Sort(got)
	if !slices.Equal(got, []string{"fresh", "old"}) {
		t.Errorf("claimed %v", got)
	}
}

// TestClaimsStayFastUnderAnOldTransaction compares with what a store needs that remembers nothing yet. It runs an hour's worth of messages (four a second; at full scale, fifty) while a
// transaction is open that began before: nothing that is gone can be cleaned up.
func TestClaimsStayFastUnderAnOldTransaction(t *testing.T) {
	rounds := 160 // of 100 messages
	if fullScale() {
		rounds = 1800
	}
	address := testserver.Postgres(t)
	s := open(t, address, pgstore.Settings{})
	c, err := pgx.Connect(t.Context(), address)
	must(t, err)
	defer c.Close(t.Context())
	tx, err := c.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	must(t, err)
	defer tx.Rollback(t.Context())
	_, err = tx.Exec(t.Context(), "SELECT count(*) FROM belfry_messages")
	must(t, err)

	var took []time.Duration
	for round := range rounds {
		at := store.Floor(now.Add(time.Duration(round) * time.Hour / time.Duration(rounds)))
		var messages []store.Message
		for i := range 100 {
			messages = append(messages, store.Message{Queue: "q", ID: fmt.Sprintf("m%06d", round*100+i), FireAt: at, Priority: int32(i % 8)})
		}
		put(t, s, messages...)
		begin := time.Now()
		got, err := s.Claim(t.Context(), store.Claim{Now: at, Until: at.Add(time.Minute), Queues: []store.QueueClaim{{Queue: "q", Limit: 90}}})
		must(t, err)
		took = append(took, time.Since(begin))
		rest, err := s.Claim(t.Context(), store.Claim{Now: at, Until: at.Add(time.Minute), Queues: []store.QueueClaim{{Queue: "q", Limit: 90}}})
		must(t, err)
		if len(got.Messages) != 90 || len(rest.Messages) != 10 {
			t.Fatalf("round %d: claimed %d and %d messages of 100", round, len(got.Messages), len(rest.Messages))
		}
		var settlements []store.Settlement
		for _, m := range append(got.Messages, rest.Messages...) {
			settlements = append(settlements, store.Settlement{Token: m.Token(), Outcome: store.OutcomeDone, PurgeAt: store.Never})
		}
		errs, err := s.Settle(t.Context(), at, settlements)
		must(t, errors.Join(append(errs, err)...))
	}
	fresh := open(t, address, pgstore.Settings{})
	take(t, fresh, "another", 1) // prepares its statements
	begin := time.Now()
	take(t, fresh, "q", 90)
	whole, last := time.Since(begin), median(took[len(took)-rounds/5:])
	t.Logf("at the end of %d messages, a claim took %v; one that begins at the beginning %v", rounds*100, last, whole)
	if fullScale() && last > whole/2 { // smaller differences drown in what else the machine does
		t.Errorf("a claim took %v, which is no less than %v for one that begins at the beginning", last, whole)
	}
}

func median(all []time.Duration) time.Duration {
	all = slices.Clone(all)
	slices.Sort(all)
	return all[len(all)/2]
}
