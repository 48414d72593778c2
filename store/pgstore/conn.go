package pgstore

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/belfryhq/belfry/store"
	"github.com/belfryhq/belfry/store/internal/sqlstore"
)

// database is the sqlstore.DB and Batcher of a pool.
type database struct {
	pool *pgxpool.Pool

	mu     sync.RWMutex // read by what is under way
	closed bool
}

// enter lets a call in; leave is called when it is done.
func (d *database) enter() (leave func(), err error) {
	d.mu.RLock()
	if d.closed {
		d.mu.RUnlock()
		return nil, store.ErrClosed
	}
	return d.mu.RUnlock, nil
}

// close waits for what is under way and lets nothing more in.
func (d *database) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
}

// mostTries is how often a transaction that loses races is run.
const mostTries = 10

// again runs f until it neither loses a race nor meets a connection that is not fit for writing.
func (d *database) again(ctx context.Context, f func() error) error {
	leave, err := d.enter()
	if err != nil {
		return err
	}
	defer leave()
	for try := 1; ; try++ {
		err := f()
		if err == nil {
			return nil
		}
		if standby(err) {
			d.pool.Reset() // the server was demoted: find the new one
		}
		if try == mostTries || !lostRace(err) || ctx.Err() != nil {
			return err
		}
		time.Sleep(rand.N(time.Duration(try) * 5 * time.Millisecond))
	}
}

// The codes of PostgreSQL's errors, from its appendix "Error Codes".
const (
	codeSerialization = "40001"
	codeDeadlock      = "40P01"
	codeUnique        = "23505"
	codeDivision      = "22012"
	codeReadOnly      = "25006"
	codeProtocol      = "08P01" // what PgBouncer answers to parameters that it does not know
)

func code(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}

// lostRace reports whether a transaction was undone because of another one and may run again.
func lostRace(err error) bool {
	switch code(err) {
	case codeSerialization, codeDeadlock, codeUnique:
		return true
	default:
		return errors.Is(err, sqlstore.ErrAgain)
	}
}

// standby reports whether the server only reads.
func standby(err error) bool { return code(err) == codeReadOnly }

// Write runs f in a transaction.
func (d *database) Write(ctx context.Context, _ sqlstore.Load, f func(context.Context, sqlstore.Conn) error) error {
	return d.again(ctx, func() error {
		return pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error { return f(ctx, &conn{tx: tx}) })
	})
}

// Read runs f on one snapshot.
func (d *database) Read(ctx context.Context, f func(context.Context, sqlstore.Conn) error) error {
	leave, err := d.enter()
	if err != nil {
		return err
	}
	defer leave()
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	return pgx.BeginTxFunc(ctx, d.pool, options, func(tx pgx.Tx) error { return f(ctx, &conn{tx: tx}) })
}

// Batch runs steps in one round trip, which PostgreSQL makes one transaction.
func (d *database) Batch(ctx context.Context, steps []sqlstore.Step) error {
	err := d.again(ctx, func() error {
		var batch pgx.Batch
		for i := range steps {
			s := &steps[i]
			if s.Begin != nil {
				s.Begin()
			}
			q := batch.Queue(s.Query.SQL, arguments(s.Query, s.Args)...)
			q.Query(func(rows pgx.Rows) error { return read(rows, s.Row) })
		}
		return d.pool.SendBatch(ctx, &batch).Close()
	})
	if code(err) == codeDivision {
		return sqlstore.ErrRefused
	}
	return err
}

// read hands the rows on.
func read(rows pgx.Rows, row func(sqlstore.Row) error) error {
	defer rows.Close()
	for rows.Next() {
		if row == nil {
			continue
		}
		if err := row(first{rows}); err != nil {
			return err
		}
	}
	return rows.Err()
}

// first reads the first columns of a row.
type first struct{ pgx.Rows }

// Scan leaves out the columns that nobody asks for.
func (f first) Scan(dest ...any) error {
	if missing := len(f.FieldDescriptions()) - len(dest); missing > 0 {
		dest = append(dest[:len(dest):len(dest)], make([]any, missing)...)
	}
	return f.Rows.Scan(dest...)
}

// conn is a transaction as the shared code uses it.
type conn struct{ tx pgx.Tx }

// most is how many lists of arguments go into one pipeline.
const most = 1000

// Exec runs a query for each list of arguments, in pipelines.
func (c *conn) Exec(ctx context.Context, q *sqlstore.Query, n int, args func(i int) []any, touched func(i int, rows int64)) error {
	for from := 0; from < n; from += most {
		var batch pgx.Batch
		for i := from; i < min(n, from+most); i++ {
			queued := batch.Queue(q.SQL, arguments(q, args(i))...)
			queued.Exec(func(tag pgconn.CommandTag) error {
				if touched != nil {
					touched(i, tag.RowsAffected())
				}
				return nil
			})
		}
		if err := c.tx.SendBatch(ctx, &batch).Close(); err != nil {
			return err
		}
	}
	return nil
}

// Query runs a query for each list of arguments, in pipelines, and reads its rows.
func (c *conn) Query(ctx context.Context, q *sqlstore.Query, n int, args func(i int) []any, row func(i int, r sqlstore.Row) error) error {
	if n == 1 {
		rows, err := c.tx.Query(ctx, q.SQL, arguments(q, args(0))...)
		if err != nil {
			return err
		}
		return read(rows, func(r sqlstore.Row) error { return row(0, r) })
	}
	for from := 0; from < n; from += most {
		var batch pgx.Batch
		for i := from; i < min(n, from+most); i++ {
			queued := batch.Queue(q.SQL, arguments(q, args(i))...)
			queued.Query(func(rows pgx.Rows) error {
				return read(rows, func(r sqlstore.Row) error { return row(i, r) })
			})
		}
		if err := c.tx.SendBatch(ctx, &batch).Close(); err != nil {
			return err
		}
	}
	return nil
}

// Savepoint runs f and undoes it when it fails.
func (c *conn) Savepoint(ctx context.Context, f func() error) error {
	whole := c.tx
	defer func() { c.tx = whole }()
	return pgx.BeginFunc(ctx, whole, func(part pgx.Tx) error {
		c.tx = part
		return f()
	})
}

// arguments returns the arguments in the order of the placeholders, as values: what pointers point to changes before the
// pipeline is sent.
func arguments(q *sqlstore.Query, args []any) []any {
	values := make([]any, len(q.Order))
	for k, i := range q.Order {
		switch v := args[i].(type) {
		case *int64:
			values[k] = *v
		case *string:
			values[k] = *v
		case *[]byte:
			values[k] = *v
		case *sql.NullInt64:
			values[k] = *v
		default:
			values[k] = v
		}
		if b, ok := values[k].([]byte); ok && b == nil {
			values[k] = nil
		}
	}
	return values
}
