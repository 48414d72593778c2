package pgstore_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/belfryhq/belfry/internal/testserver"
	"github.com/belfryhq/belfry/store/pgstore"
)

// with returns a URL with further parameters.
func with(t testing.TB, address string, pairs ...string) string {
	t.Helper()
	u, err := url.Parse(address)
	must(t, err)
	query := u.Query()
	for i := 0; i < len(pairs); i += 2 {
		query.Set(pairs[i], pairs[i+1])
	}
	u.RawQuery = query.Encode()
	return u.String()
}

// run runs SQL beside a store.
func run(t testing.TB, address string, queries ...string) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), address)
	must(t, err)
	defer c.Close(context.Background())
	for _, query := range queries {
		if _, err := c.Exec(t.Context(), query); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
	}
}

// ask returns the text of a query's one value.
func ask(t testing.TB, address, query string) string {
	t.Helper()
	c, err := pgx.Connect(t.Context(), address)
	must(t, err)
	defer c.Close(context.Background())
	var value any
	must(t, c.QueryRow(t.Context(), query).Scan(&value))
	return fmt.Sprint(value)
}

func TestManyServersMayStartOnAnEmptyDatabaseAtOnce(t *testing.T) {
	address := testserver.Postgres(t)
	var wait sync.WaitGroup
	errs := make([]error, 12)
	for i := range errs {
		wait.Go(func() {
			settings := pgstore.Settings{Schema: "shared", Prefix: "p_", Pooled: i%2 == 0}
			s, err := pgstore.Open(t.Context(), address, settings)
			if err == nil {
				err = s.Close()
			}
			errs[i] = err
		})
	}
	wait.Wait()
	must(t, errors.Join(errs...))
	s := open(t, with(t, address, "schema", "shared", "prefix", "p_"), pgstore.Settings{})
	put(t, s, whole("a"))
	if n := ask(t, address, "SELECT count(*) FROM shared.p_messages"); n != "1" {
		t.Errorf("the table has %s messages", n)
	}
}

func TestStoresOfOneDatabaseAreKeptApartBySchemaAndPrefix(t *testing.T) {
	address := testserver.Postgres(t)
	all := []*pgstore.Store{
		open(t, address, pgstore.Settings{}),
		open(t, address, pgstore.Settings{Prefix: "x_"}),
		open(t, address, pgstore.Settings{Schema: "x"}),
		open(t, address, pgstore.Settings{Schema: "x", Prefix: "_"}),
	}
	for _, s := range all {
		put(t, s, whole("a"))
	}
	for i, s := range all {
		if got := claim(t, s, "q", 10); len(got) != 1 {
			t.Errorf("store %d claimed %v", i, got)
		}
	}
}

func TestTablesOfANewerProgramAreRefused(t *testing.T) {
	address := testserver.Postgres(t)
	must(t, open(t, address, pgstore.Settings{}).Close())
	run(t, address, "INSERT INTO belfry_migrations (version_id, is_applied) VALUES (99, true)")
	if _, err := pgstore.Open(t.Context(), address, pgstore.Settings{}); !errors.Is(err, pgstore.ErrNewerSchema) {
		t.Errorf("Open: %v", err)
	}
	m, err := pgstore.Migrations(address)
	must(t, err)
	if _, err := m.Up(t.Context()); !errors.Is(err, pgstore.ErrNewerSchema) {
		t.Errorf("Up: %v", err)
	}
	if _, err := m.Down(t.Context()); !errors.Is(err, pgstore.ErrNewerSchema) {
		t.Errorf("Down: %v", err)
	}
	all, err := m.Status(t.Context())
	must(t, err)
	if last := all[len(all)-1]; last.Version != 99 || last.AppliedAt.IsZero() {
		t.Errorf("Status ends with %+v", last)
	}
}

func TestStepsAreMadeAndTakenBack(t *testing.T) {
	m, err := pgstore.Migrations(testserver.Postgres(t))
	must(t, err)
	before, err := m.Status(t.Context())
	must(t, err)
	for round := range 2 {
		made, err := m.Up(t.Context())
		must(t, err)
		if len(made) != len(before) || made[0].Name != "messages" || made[0].AppliedAt.IsZero() {
			t.Fatalf("round %d: made %+v of %+v", round, made, before)
		}
		if made, err = m.Up(t.Context()); err != nil || len(made) != 0 {
			t.Fatalf("round %d: made again: %+v, %v", round, made, err)
		}
		for range before {
			if back, err := m.Down(t.Context()); err != nil || back == nil {
				t.Fatalf("round %d: took back %+v, %v", round, back, err)
			}
		}
	}
	if back, err := m.Down(t.Context()); err != nil || back != nil {
		t.Errorf("took back %+v of nothing: %v", back, err)
	}
}

func TestTheDumpedSQLMakesTheTables(t *testing.T) {
	address := with(t, testserver.Postgres(t), "schema", "by_hand")
	m, err := pgstore.Migrations(address)
	must(t, err)
	text, err := m.Dump()
	must(t, err)
	plain, _, err := pgstore.ParseURL(address)
	must(t, err)
	run(t, plain, text)
	if made, err := m.Up(t.Context()); err != nil || len(made) != 0 {
		t.Errorf("after the dump there are steps left: %+v, %v", made, err)
	}
	put(t, open(t, address, pgstore.Settings{}), whole("a"))
}

// TestAProgramWithFewRightsCanUseTablesOfOthers checks that Open asks for nothing that is there.
func TestAProgramWithFewRightsCanUseTablesOfOthers(t *testing.T) {
	address := testserver.Postgres(t)
	must(t, open(t, address, pgstore.Settings{Schema: "owned"}).Close())
	role := "few_" + ask(t, address, "SELECT substr(md5(current_database()), 1, 8)")
	run(t, address, "CREATE ROLE "+role+" LOGIN", "GRANT USAGE ON SCHEMA owned TO "+role,
		"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA owned TO "+role,
		"GRANT USAGE ON ALL SEQUENCES IN SCHEMA owned TO "+role)
	t.Cleanup(func() {
		c, err := pgx.Connect(context.Background(), address)
		must(t, err)
		defer c.Close(context.Background())
		_, err = c.Exec(context.Background(), "DROP OWNED BY "+role+"; DROP ROLE "+role)
		must(t, err)
	})
	u, err := url.Parse(address)
	must(t, err)
	u.User = url.User(role)
	s := open(t, u.String(), pgstore.Settings{Schema: "owned"})
	put(t, s, whole("a"))
	finish(t, s, "q")
	if _, err := s.Purge(t.Context(), now, 10); err != nil {
		t.Error(err)
	}
}

// TestAStatementTimeoutCutsNoMigration checks that whoever waits for another's migration, or makes one, may take long.
func TestAStatementTimeoutCutsNoMigration(t *testing.T) {
	address := testserver.Postgres(t)
	c, err := pgx.Connect(t.Context(), address)
	must(t, err)
	defer c.Close(context.Background())
	tx, err := c.Begin(t.Context())
	must(t, err)
	_, err = tx.Exec(t.Context(), "SELECT pg_advisory_xact_lock(hashtextextended($1, 588794053))", "public.belfry_migrations")
	must(t, err)
	opened := make(chan error, 1)
	go func() {
		s, err := pgstore.Open(t.Context(), with(t, address, "statement_timeout", "500ms"), pgstore.Settings{})
		if err == nil {
			err = s.Close()
		}
		opened <- err
	}()
	waits := "SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE l.locktype = 'advisory' AND NOT l.granted AND a.datname = current_database()" +
		" AND now() - a.query_start > interval '800 milliseconds'"
	for ask(t, address, waits) != "1" {
		select {
		case err := <-opened:
			t.Fatalf("Open did not wait: %v", err)
		default:
		}
	}
	must(t, tx.Rollback(t.Context()))
	must(t, <-opened)
}

func TestASettingThatIsWrongIsRefusedWithoutSecrets(t *testing.T) {
	for _, parameters := range []string{
		"schema=Upper", "schema=1a", "schema=a-b", "prefix=" + strings.Repeat("a", 33), "prefix=a%22b", "connections=1", "connections=x",
		"pooled=maybe", "statement_timeout=5", "sslmode=what", "sslrootcert=/not/there&sslmode=verify-full",
	} {
		_, err := pgstore.Open(t.Context(), "postgres://user:secret@127.0.0.1:1/db?"+parameters, pgstore.Settings{})
		if err == nil || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "127.0.0.1") {
			t.Errorf("%s: %v", parameters, err)
		}
	}
}
