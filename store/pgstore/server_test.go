package pgstore_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/belfryhq/belfry/internal/testserver"
	"github.com/belfryhq/belfry/store"
	"github.com/belfryhq/belfry/store/pgstore"
)

// TestWhatWasAcknowledgedSurvivesTheServer kills the server again and again while messages are put, and then looks for those
// that were acknowledged.
func TestWhatWasAcknowledgedSurvivesTheServer(t *testing.T) {
	t.Parallel()
	server := testserver.StartPostgres(t)
	s := open(t, server.URL, pgstore.Settings{})
	var mu sync.Mutex
	acknowledged := map[string]bool{}
	var wait sync.WaitGroup
	for writer := range 4 {
		wait.Go(func() {
			for i := 0; t.Context().Err() == nil; i++ {
				id := fmt.Sprintf("%d-%05d", writer, i)
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				results, err := s.Put(ctx, now, []store.Message{{Queue: "q", ID: id, FireAt: now}}, 0)
				cancel()
				mu.Lock()
				if err == nil && results[0].Err == nil {
					acknowledged[id] = true
				}
				enough := len(acknowledged) >= 300
				mu.Unlock()
				if enough {
					return
				}
			}
		})
	}
	for kills := 1; kills <= 2; kills++ {
		for enough := false; !enough; {
			mu.Lock()
			enough = len(acknowledged) >= 100*kills
			mu.Unlock()
		}
		must(t, server.Kill())
		must(t, server.Start())
	}
	wait.Wait()
	found := map[string]bool{}
	for {
		got := take(t, s, "q", 500)
		for _, m := range got {
			if found[m.ID] {
				t.Errorf("%s was claimed twice", m.ID)
			}
			found[m.ID] = true
		}
		if len(got) == 0 {
			break
		}
	}
	for id := range acknowledged {
		if !found[id] {
			t.Errorf("%s was acknowledged and is lost", id)
		}
	}
}

// TestAStoreOutlivesItsServersRestart checks that calls fail while the server is gone, soon, and work again by themselves.
func TestAStoreOutlivesItsServersRestart(t *testing.T) {
	t.Parallel()
	server := testserver.StartPostgres(t)
	s := open(t, server.URL, pgstore.Settings{})
	put(t, s, whole("a"))
	must(t, server.Stop())
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := s.Ping(ctx); err == nil || ctx.Err() != nil {
		t.Errorf("Ping of a server that is gone: %v, %v", err, ctx.Err())
	}
	must(t, server.Start())
	var err error
	for range 3 { // connections of the pool that broke are found out one by one
		if _, err = s.Get(t.Context(), store.Key{Queue: "q", ID: "a"}); err == nil {
			break
		}
	}
	must(t, err)
	must(t, s.Ping(t.Context()))
}

// TestALockHoldsNobodyBeyondTheirTime checks that a call ends with its context.
func TestALockHoldsNobodyBeyondTheirTime(t *testing.T) {
	t.Parallel()
	server := testserver.StartPostgres(t)
	s := open(t, server.URL, pgstore.Settings{})
	put(t, s, whole("a"))
	c, err := pgxpool.New(t.Context(), server.URL)
	must(t, err)
	defer c.Close()
	tx, err := c.Begin(t.Context())
	must(t, err)
	_, err = tx.Exec(t.Context(), "LOCK TABLE belfry_messages IN ACCESS EXCLUSIVE MODE")
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := s.Put(ctx, now, []store.Message{whole("b")}, 0); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Put: %v", err)
	}
	must(t, tx.Rollback(t.Context()))
	put(t, s, whole("c"))
}

func TestAServerThatOnlyReadsIsNotPingedAsOneThatWrites(t *testing.T) {
	t.Parallel()
	address := testserver.Postgres(t)
	s := open(t, address, pgstore.Settings{})
	must(t, s.Ping(t.Context()))
	database := ask(t, address, "SELECT current_database()")
	run(t, address, "ALTER DATABASE "+database+" SET default_transaction_read_only = on")
	// As after a failover, sessions find out with their first write, and new ones are made.
	run(t, address, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
	var err error
	for range 3 {
		_, err = s.Put(t.Context(), now, []store.Message{whole("a")}, 0)
	}
	if err == nil {
		t.Error("Put on a server that only reads gave no error")
	}
	if err := s.Ping(t.Context()); err == nil {
		t.Error("Ping of a server that only reads gave no error")
	}
	run(t, with(t, address, "default_transaction_read_only", "off"), "ALTER DATABASE "+database+" RESET default_transaction_read_only")
	for range 3 {
		if _, err = s.Put(t.Context(), now, []store.Message{whole("b")}, 0); err == nil {
			break
		}
	}
	must(t, err)
	must(t, s.Ping(t.Context()))
}

func TestInspectReadsWhatCommitsAreWorth(t *testing.T) {
	t.Parallel()
	durable := testserver.StartPostgres(t).URL
	for _, c := range []struct {
		name, url string
		want      store.Durability
	}{
		{"a server as it comes", durable, store.Strict},
		{"commits that do not wait", with(t, durable, "synchronous_commit", "off"), store.Weak},
		{"commits that wait for the disk here", with(t, durable, "synchronous_commit", "local"), store.Strict},
	} {
		info, err := open(t, c.url, pgstore.Settings{}).Inspect(t.Context())
		must(t, err)
		if info.Durability != c.want || info.Name != "postgresql" || info.Schema < 1 || info.Version == "" || info.Details["synchronous_commit"] == "" ||
			info.Details["fsync"] != "on" || info.Details["full_page_writes"] != "on" {
			t.Errorf("%s: %+v", c.name, info)
		}
	}
}

// TestAStoreOnACallersPoolLeavesItOpen checks New.
func TestAStoreOnACallersPoolLeavesItOpen(t *testing.T) {
	t.Parallel()
	address := testserver.Postgres(t)
	must(t, open(t, address, pgstore.Settings{}).Close())
	pool, err := pgxpool.New(t.Context(), address)
	must(t, err)
	defer pool.Close()
	s, err := pgstore.New(t.Context(), pool, pgstore.Settings{})
	must(t, err)
	put(t, s, whole("a"))
	must(t, s.Close())
	must(t, s.Close())
	if _, err := s.Put(t.Context(), now, []store.Message{whole("b")}, 0); !errors.Is(err, store.ErrClosed) {
		t.Errorf("Put after Close: %v", err)
	}
	must(t, pool.Ping(t.Context()))
}

// TestALeaseThatTheServerLostHasAnotherTokenThanTheNext kills the server when a claim has been answered and not yet been
// written to the disk, for which claims do not wait.
func TestALeaseThatTheServerLostHasAnotherTokenThanTheNext(t *testing.T) {
	t.Parallel()
	server := testserver.StartPostgres(t)
	run(t, server.URL, "ALTER SYSTEM SET wal_writer_delay = '10s'", "SELECT pg_reload_conf()")
	s := open(t, server.URL, pgstore.Settings{})
	claimed := func() []store.Message {
		at := time.Now()
		got, err := s.Claim(t.Context(), store.Claim{Now: at, Until: at.Add(time.Hour), Queues: []store.QueueClaim{{Queue: "q", Limit: 1}}})
		for try := 0; err != nil && try < 3; try++ { // over connections that broke
			got, err = s.Claim(t.Context(), store.Claim{Now: at, Until: at.Add(time.Hour), Queues: []store.QueueClaim{{Queue: "q", Limit: 1}}})
		}
		must(t, err)
		return got.Messages
	}
	results, err := s.Put(t.Context(), time.Now(), []store.Message{{Queue: "q", ID: "a", FireAt: time.Now()}}, 0)
	must(t, errors.Join(err, results[0].Err))
	first := claimed()
	must(t, server.Kill())
	must(t, server.Start())
	second := claimed()
	if len(first) != 1 || len(second) != 1 {
		t.Fatalf("claimed %d messages, and %d when the server was back without the lease", len(first), len(second))
	}
	errs, err := s.Settle(t.Context(), time.Now(), []store.Settlement{{Token: first[0].Token(), Outcome: store.OutcomeDone, PurgeAt: store.Never}})
	must(t, err)
	if !errors.Is(errs[0], store.ErrLeaseLost) {
		t.Errorf("the token %+v of the lost lease ended the lease %+v: %v", first[0].Token(), second[0].Token(), errs[0])
	}
}
