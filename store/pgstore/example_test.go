package pgstore_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx" of database/sql

	"github.com/belfryhq/belfry"
	"github.com/belfryhq/belfry/internal/testserver"
	"github.com/belfryhq/belfry/store"
	"github.com/belfryhq/belfry/store/pgstore"
)

// databaseURL names the program's own database, postgres://user:password@host:5432/database.
var databaseURL string

// An order and the reminder of its payment are stored together or not at all.
func ExampleStore_InTx_pgx() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, databaseURL)
	check(err)
	defer pool.Close()
	s, err := pgstore.Open(ctx, databaseURL, pgstore.Settings{Schema: "belfry"})
	check(err)
	defer s.Close()
	client := belfry.New(s, belfry.Settings{})
	defer client.Close()

	tx, err := pool.Begin(ctx)
	check(err)
	defer tx.Rollback(ctx)
	_, err = tx.Exec(ctx, "INSERT INTO orders (id) VALUES ($1)", "order-1")
	check(err)
	in, err := client.InTx(tx)
	check(err)
	_, err = in.Schedule(ctx, "payment.remind", "order-1", belfry.ID("order-1"), belfry.In(72*time.Hour))
	check(err)
	check(tx.Commit(ctx))

	m, err := client.Get(ctx, belfry.DefaultQueue, "order-1")
	check(err)
	fmt.Println(m.State, string(m.Payload))
}

// What is built on database/sql takes part, too: with GORM, give tx.Statement.ConnPool; with bun and sqlx, the transaction
// itself; with ent and sqlc, the *sql.Tx that they were given.
func ExampleStore_InTx_databaseSQL() {
	ctx := context.Background()
	db, err := sql.Open("pgx", databaseURL)
	check(err)
	defer db.Close()
	s, err := pgstore.Open(ctx, databaseURL, pgstore.Settings{Schema: "belfry"})
	check(err)
	defer s.Close()
	client := belfry.New(s, belfry.Settings{})
	defer client.Close()

	tx, err := db.BeginTx(ctx, nil)
	check(err)
	defer tx.Rollback()
	_, err = tx.ExecContext(ctx, "UPDATE orders SET paid = true WHERE id = $1", "order-1")
	check(err)
	in, err := client.InTx(tx)
	check(err)
	_, err = in.Cancel(ctx, belfry.DefaultQueue, "order-1")
	check(err)
	check(tx.Commit())

	m, err := client.Get(ctx, belfry.DefaultQueue, "order-1")
	check(err)
	fmt.Println(m.State)
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// TestTheExamplesRun runs them one after the other on a database with their table.
func TestTheExamplesRun(t *testing.T) {
	databaseURL = testserver.Postgres(t)
	run(t, databaseURL, "CREATE TABLE orders (id text PRIMARY KEY, paid boolean NOT NULL DEFAULT false)")
	ExampleStore_InTx_pgx()
	ExampleStore_InTx_databaseSQL()
	if paid := ask(t, databaseURL, "SELECT paid FROM orders WHERE id = 'order-1'"); paid != "true" {
		t.Errorf("paid: %s", paid)
	}
	m, err := open(t, databaseURL, pgstore.Settings{Schema: "belfry"}).Get(t.Context(), store.Key{Queue: belfry.DefaultQueue, ID: "order-1"})
	must(t, err)
	if m.State != store.Canceled || string(m.Payload) != `"order-1"` {
		t.Errorf("the reminder is %+v", m)
	}
}

// TestAClientInATransactionIsDeliveredOnlyWhenItCommits runs a worker beside transactions that commit and that do not.
func TestAClientInATransactionIsDeliveredOnlyWhenItCommits(t *testing.T) {
	eachBegin(t, sql.LevelDefault, func(t *testing.T, s *pgstore.Store, tx transaction, _ store.Writer) {
		client := belfry.New(s, belfry.Settings{})
		defer client.Close()
		mux, delivered := belfry.NewMux(), make(chan string, 10)
		mux.HandleFunc("kind", func(_ context.Context, d belfry.Delivery) error {
			delivered <- d.ID
			return nil
		})
		worker, err := belfry.NewWorker(client, belfry.WorkerSettings{Mux: mux})
		must(t, err)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- worker.Run(ctx) }()
		defer func() { stop(); must(t, <-ended) }()

		in, err := client.InTx(tx.tx)
		must(t, err)
		for _, id := range []string{"stays", "goes", "moves"} {
			_, err := in.Schedule(t.Context(), "kind", nil, belfry.ID(id), belfry.In(time.Hour))
			must(t, err)
		}
		_, err = in.Schedule(t.Context(), "kind", nil, belfry.ID("now"))
		must(t, err)
		if _, err := in.Schedule(t.Context(), "kind", nil, belfry.ID("now")); !errors.Is(err, belfry.ErrExists) {
			t.Errorf("an id that the transaction has put: %v", err)
		}
		m, err := in.Cancel(t.Context(), belfry.DefaultQueue, "goes")
		must(t, err)
		if m.State != belfry.Canceled {
			t.Errorf("canceled: %+v", m)
		}
		_, err = in.Reschedule(t.Context(), belfry.DefaultQueue, "moves", time.Time{})
		must(t, err)
		if _, err := in.Cancel(t.Context(), belfry.DefaultQueue, "none"); !errors.Is(err, belfry.ErrNotFound) {
			t.Errorf("a cancel of nothing: %v", err)
		}
		_, err = client.Schedule(t.Context(), "kind", nil, belfry.ID("outside"))
		must(t, err)
		if id := <-delivered; id != "outside" {
			t.Errorf("%s was delivered before its transaction has committed", id)
		}
		must(t, tx.commit())
		got := map[string]bool{<-delivered: true, <-delivered: true}
		if !got["now"] || !got["moves"] {
			t.Errorf("delivered %v", got)
		}
	})
}
