package pgstore_test

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/belfryhq/belfry/internal/testserver"
	"github.com/belfryhq/belfry/store"
	"github.com/belfryhq/belfry/store/pgstore"
)

// transaction is a transaction of a caller's, of whatever package.
type transaction struct {
	tx       any
	exec     func(query string) error
	commit   func() error
	rollback func() error
}

// begins are the ways to begin one.
var begins = map[string]func(t *testing.T, url string, isolation sql.IsolationLevel) transaction{
	"pgx.Tx": func(t *testing.T, url string, isolation sql.IsolationLevel) transaction {
		c, err := pgx.Connect(t.Context(), url)
		must(t, err)
		t.Cleanup(func() { must(t, c.Close(context.Background())) })
		levels := map[sql.IsolationLevel]pgx.TxIsoLevel{sql.LevelDefault: "", sql.LevelRepeatableRead: pgx.RepeatableRead}
		tx, err := c.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: levels[isolation]})
		must(t, err)
		return transaction{
			tx: tx, commit: func() error { return tx.Commit(t.Context()) }, rollback: func() error { return tx.Rollback(t.Context()) },
			exec: func(query string) error { _, err := tx.Exec(t.Context(), query); return err },
		}
	},
	"sql.Tx": func(t *testing.T, url string, isolation sql.IsolationLevel) transaction {
		conf, err := pgx.ParseConfig(url)
		must(t, err)
		db := stdlib.OpenDB(*conf)
		t.Cleanup(func() { must(t, db.Close()) })
		tx, err := db.BeginTx(t.Context(), &sql.TxOptions{Isolation: isolation})
		must(t, err)
		return transaction{
			tx: tx, commit: tx.Commit, rollback: tx.Rollback,
			exec: func(query string) error { _, err := tx.ExecContext(t.Context(), query); return err },
		}
	},
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eachBegin runs a test with each kind of transaction, on a database of its own.
func eachBegin(t *testing.T, isolation sql.IsolationLevel, f func(t *testing.T, s *pgstore.Store, tx transaction, w store.Writer)) {
	for name, begin := range begins {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := testserver.Postgres(t)
			s := open(t, url, pgstore.Settings{})
			tx := begin(t, url, isolation)
			t.Cleanup(func() { _ = tx.rollback() }) // where the test has not ended it
			w, err := s.InTx(tx.tx)
			must(t, err)
			f(t, s, tx, w)
		})
	}
}

// open opens a store that is closed when the test ends.
func open(t testing.TB, url string, settings pgstore.Settings) *pgstore.Store {
	t.Helper()
	s, err := pgstore.Open(t.Context(), url, settings)
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}

// now is the instant of the tests that bring their own.
var now = time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC)

// whole returns a message with everything that is kept in a way of its own.
func whole(id string) store.Message {
	return store.Message{
		Queue: "q", ID: id, Kind: "kind", FireAt: now, Payload: []byte{}, Metadata: []byte(`{"a":1}`), DedupKey: "key " + id,
		Headers: map[string]string{"h": "ü"}, ExpiresAt: now.Add(time.Hour),
		History: []store.Attempt{{Number: 1, Error: "no", StartedAt: now.Add(-time.Hour)}},
	}
}

func TestWhatIsPutInATransactionIsThereWhenItCommits(t *testing.T) {
	eachBegin(t, sql.LevelDefault, func(t *testing.T, s *pgstore.Store, tx transaction, w store.Writer) {
		put(t, s, whole("before"))
		results, err := w.Put(t.Context(), now, []store.Message{whole("a"), whole("b"), whole("before")}, 0)
		must(t, err)
		if results[0].Err != nil || results[1].Err != nil || !errors.Is(results[2].Err, store.ErrExists) || results[2].Existing.ID != "before" {
			t.Fatalf("put gave %+v", results)
		}
		if _, err := s.Get(t.Context(), store.Key{Queue: "q", ID: "a"}); !errors.Is(err, store.ErrNotFound) {
			t.Fatalf("a message of an open transaction is seen by others: %v", err)
		}
		inside, err := w.Get(t.Context(), store.Key{Queue: "q", ID: "a"})
		must(t, err)
		must(t, tx.commit())
		outside, err := s.Get(t.Context(), store.Key{Queue: "q", ID: "a"})
		must(t, err)
		if inside.Version != outside.Version || outside.Payload == nil || string(outside.Metadata) != `{"a":1}` || len(outside.History) != 1 ||
			outside.Headers["h"] != "ü" || !outside.ExpiresAt.Equal(now.Add(time.Hour)) {
			t.Errorf("in the transaction %+v, after it %+v", inside, outside)
		}
		if got := claim(t, s, "q", 10); !slices.Equal(got, []string{"a", "b", "before"}) {
			t.Errorf("claimed %v", got)
		}
	})
}

func TestWhatIsRolledBackNeverWas(t *testing.T) {
	eachBegin(t, sql.LevelDefault, func(t *testing.T, s *pgstore.Store, tx transaction, w store.Writer) {
		m := put(t, s, whole("waits"))
		_, err := w.Put(t.Context(), now, []store.Message{whole("a")}, 0)
		must(t, err)
		m.State, m.PurgeAt = store.Canceled, store.Never
		errs, err := w.Replace(t.Context(), now, []store.Change{{Message: m}})
		must(t, errors.Join(append(errs, err)...))
		must(t, tx.rollback())
		if got := claim(t, s, "q", 10); !slices.Equal(got, []string{"waits"}) {
			t.Errorf("claimed %v", got)
		}
	})
}

func TestACancelInATransactionHoldsClaimsOff(t *testing.T) {
	eachBegin(t, sql.LevelDefault, func(t *testing.T, s *pgstore.Store, tx transaction, w store.Writer) {
		put(t, s, whole("a"))
		m, err := w.Get(t.Context(), store.Key{Queue: "q", ID: "a"})
		must(t, err)
		if got := claim(t, s, "q", 10); len(got) != 0 {
			t.Errorf("claimed %v, which a transaction has read to change it", got)
		}
		m.State, m.PurgeAt = store.Canceled, store.Never
		errs, err := w.Replace(t.Context(), now, []store.Change{{Message: m}, {Message: m}})
		must(t, err)
		if errs[0] != nil || !errors.Is(errs[1], store.ErrConflict) {
			t.Errorf("two changes of one version gave %v", errs)
		}
		must(t, tx.commit())
		if got := claim(t, s, "q", 10); len(got) != 0 {
			t.Errorf("claimed %v, which was canceled", got)
		}
	})
}

func TestACallThatFailsLeavesTheTransactionUsable(t *testing.T) {
	eachBegin(t, sql.LevelDefault, func(t *testing.T, s *pgstore.Store, tx transaction, w store.Writer) {
		must(t, tx.exec("CREATE TABLE orders (id int)"))
		bad := whole("bad")
		bad.Kind = "a\x00b" // which no text of PostgreSQL holds
		if _, err := w.Put(t.Context(), now, []store.Message{whole("a"), bad}, 0); err == nil {
			t.Fatal("a text with NUL was stored")
		}
		must(t, tx.exec("INSERT INTO orders VALUES (1)"))
		results, err := w.Put(t.Context(), now, []store.Message{whole("b")}, 0)
		must(t, errors.Join(err, results[0].Err))
		must(t, tx.commit())
		if got := claim(t, s, "q", 10); !slices.Equal(got, []string{"b"}) {
			t.Errorf("claimed %v", got)
		}
	})
}

func TestATransactionThatSeesThePastCannotTakeAnIDTwice(t *testing.T) {
	eachBegin(t, sql.LevelRepeatableRead, func(t *testing.T, s *pgstore.Store, tx transaction, w store.Writer) {
		must(t, tx.exec("SELECT 1")) // takes its snapshot
		put(t, s, whole("a"))
		finish(t, s, "q")
		results, err := w.Put(t.Context(), now, []store.Message{whole("a")}, 0)
		if err == nil || results != nil {
			t.Errorf("a message that others finished after the snapshot was put again: %+v", results)
		}
		results, err = w.Put(t.Context(), now, []store.Message{whole("b")}, 0)
		must(t, errors.Join(err, results[0].Err))
		must(t, tx.commit())
	})
}

func TestAWakeUpOfATransactionIsHeardWhenItCommits(t *testing.T) {
	eachBegin(t, sql.LevelDefault, func(t *testing.T, s *pgstore.Store, tx transaction, w store.Writer) {
		heard := listen(t, s)
		must(t, w.Wake(t.Context(), []store.QueueHint{{Queue: "later", At: now}}))
		must(t, s.Wake(t.Context(), []store.QueueHint{{Queue: "sooner", At: now}}))
		if h := <-heard; h.Queue != "sooner" {
			t.Errorf("heard of %q before its transaction has committed", h.Queue)
		}
		must(t, tx.commit())
		if h := <-heard; h.Queue != "later" || !h.At.Equal(now) {
			t.Errorf("heard %v", h)
		}
	})
}

// TestTheMarkOfVersionsIsNotLockedByCallers checks that a transaction that stays open makes nobody wait.
func TestTheMarkOfVersionsIsNotLockedByCallers(t *testing.T) {
	eachBegin(t, sql.LevelDefault, func(t *testing.T, s *pgstore.Store, _ transaction, w store.Writer) {
		results, err := w.Put(t.Context(), now, []store.Message{whole("a")}, 0)
		must(t, errors.Join(err, results[0].Err))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		results, err = s.Put(ctx, now.Add(time.Hour), []store.Message{whole("b")}, 0) // whose versions are beyond the mark
		must(t, errors.Join(err, results[0].Err))
	})
}

func TestWhatIsNoTransactionIsRefused(t *testing.T) {
	s := open(t, testserver.Postgres(t), pgstore.Settings{})
	for _, tx := range []any{nil, 1, &sql.DB{}, &sql.Conn{}} {
		if _, err := s.InTx(tx); err == nil {
			t.Errorf("a %T was taken for a transaction", tx)
		}
	}
}

// put stores messages that must be accepted, and returns the last one.
func put(t testing.TB, s store.Store, messages ...store.Message) store.Message {
	t.Helper()
	results, err := s.Put(t.Context(), now, messages, 0)
	must(t, err)
	for _, r := range results {
		must(t, r.Err)
	}
	m, err := s.Get(t.Context(), messages[len(messages)-1].Key())
	must(t, err)
	return m
}

// take claims messages of a queue.
func take(t testing.TB, s store.Store, queue string, limit int) []store.Message {
	t.Helper()
	got, err := s.Claim(t.Context(), store.Claim{Now: now, Until: now.Add(time.Minute), Owner: "node", Epoch: 1,
		Queues: []store.QueueClaim{{Queue: queue, Limit: limit}}})
	must(t, err)
	return got.Messages
}

// claim claims messages and returns their ids.
func claim(t testing.TB, s store.Store, queue string, limit int) []string {
	t.Helper()
	var ids []string
	for _, m := range take(t, s, queue, limit) {
		ids = append(ids, m.ID)
	}
	return ids
}

// finish claims messages and settles them as done and kept.
func finish(t testing.TB, s store.Store, queue string) {
	t.Helper()
	for _, m := range take(t, s, queue, 100) {
		errs, err := s.Settle(t.Context(), now, []store.Settlement{{Token: m.Token(), Outcome: store.OutcomeDone, PurgeAt: store.Never}})
		must(t, errors.Join(append(errs, err)...))
	}
}
