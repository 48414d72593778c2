package pgstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/belfryhq/belfry/store"
	"github.com/belfryhq/belfry/store/internal/sqlstore"
)

// sqlTx is a transaction of database/sql, and of what is built on it: *sql.Tx, and the transactions of sqlx and bun.
type sqlTx interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	Commit() error
	Rollback() error
}

// InTx returns a Writer in a transaction on the store's database: a pgx.Tx, or one of database/sql, whatever its driver for
// PostgreSQL. The tables are found by their schema, whatever the transaction's search path. A call that fails is undone by
// a savepoint, so that the transaction can go on; ending it is the caller's affair.
func (s *Store) InTx(tx any) (store.Writer, error) {
	leave, err := s.db.enter()
	if err != nil {
		return nil, err
	}
	leave()
	switch tx := tx.(type) {
	case pgx.Tx:
		return s.Within(&pgxTx{conn{tx}, s.waker.channel}), nil
	case sqlTx:
		return s.Within(&stdTx{stdConn{tx}, s.waker.channel}), nil
	default:
		return nil, fmt.Errorf("a %T is no transaction of PostgreSQL: give a pgx.Tx or a *sql.Tx", tx)
	}
}

// queryIsolation reads how a transaction sees the others.
const queryIsolation = "SELECT current_setting('transaction_isolation')"

// freezes reports whether transactions with the isolation see the database as it was at their beginning.
func freezes(isolation string) bool {
	return isolation == "repeatable read" || isolation == "serializable"
}

// pgxTx is a caller's pgx.Tx.
type pgxTx struct {
	conn
	channel string
}

// Frozen reports whether the transaction sees the database as it was.
func (t *pgxTx) Frozen(ctx context.Context) (bool, error) {
	var isolation string
	err := t.tx.QueryRow(ctx, queryIsolation).Scan(&isolation)
	return freezes(isolation), err
}

// LostRace reports whether a call may run again: a name was taken meanwhile. After a deadlock the caller decides.
func (t *pgxTx) LostRace(err error) bool { return code(err) == codeUnique }

// Wake notifies when the transaction commits.
func (t *pgxTx) Wake(ctx context.Context, hints []store.QueueHint) error {
	return eachText(hints, func(text string) error {
		_, err := t.tx.Exec(ctx, queryNotify, t.channel, text)
		return err
	})
}

// stdTx is a caller's transaction of database/sql.
type stdTx struct {
	stdConn
	channel string
}

// Frozen reports whether the transaction sees the database as it was.
func (t *stdTx) Frozen(ctx context.Context) (bool, error) {
	var isolation string
	err := t.each(ctx, queryIsolation, nil, func(r sqlstore.Row) error { return r.Scan(&isolation) })
	return freezes(isolation), err
}

// LostRace reports whether a call may run again.
func (t *stdTx) LostRace(err error) bool { return sqlState(err) == codeUnique }

// sqlState returns the code of an error of any driver: pgx, lib/pq and others tell it by this method.
func sqlState(err error) string {
	var e interface{ SQLState() string }
	if errors.As(err, &e) {
		return e.SQLState()
	}
	return ""
}

// Wake notifies when the transaction commits.
func (t *stdTx) Wake(ctx context.Context, hints []store.QueueHint) error {
	return eachText(hints, func(text string) error {
		_, err := t.tx.ExecContext(ctx, queryNotify, t.channel, text)
		return err
	})
}

// stdConn is a transaction of database/sql as the shared code uses it: one statement after the other.
type stdConn struct{ tx sqlTx }

// Exec runs a query for each list of arguments.
func (c *stdConn) Exec(ctx context.Context, q *sqlstore.Query, n int, args func(i int) []any, touched func(i int, rows int64)) error {
	for i := range n {
		result, err := c.tx.ExecContext(ctx, q.SQL, arguments(q, args(i))...)
		if err != nil {
			return err
		}
		rows, err := result.RowsAffected()
		if err != nil {
			return err
		}
		if touched != nil {
			touched(i, rows)
		}
	}
	return nil
}

// Query runs a query for each list of arguments and reads its rows.
func (c *stdConn) Query(ctx context.Context, q *sqlstore.Query, n int, args func(i int) []any, row func(i int, r sqlstore.Row) error) error {
	for i := range n {
		if err := c.each(ctx, q.SQL, arguments(q, args(i)), func(r sqlstore.Row) error { return row(i, r) }); err != nil {
			return err
		}
	}
	return nil
}

// each runs a query and hands its rows on.
func (c *stdConn) each(ctx context.Context, query string, args []any, row func(sqlstore.Row) error) (err error) {
	rows, err := c.tx.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	for rows.Next() {
		if err := row(stdRow{rows, len(columns)}); err != nil {
			return err
		}
	}
	return rows.Err()
}

// stdRow reads the first columns of a row.
type stdRow struct {
	rows    *sql.Rows
	columns int
}

// Scan leaves out the columns that nobody asks for.
func (r stdRow) Scan(dest ...any) error {
	all := dest[:len(dest):len(dest)]
	for len(all) < r.columns {
		all = append(all, new(any))
	}
	return r.rows.Scan(all...)
}

// Savepoint runs f and undoes it when it fails.
func (c *stdConn) Savepoint(ctx context.Context, f func() error) error {
	if _, err := c.tx.ExecContext(ctx, "SAVEPOINT belfry"); err != nil {
		return err
	}
	failed := f()
	if failed != nil {
		if _, err := c.tx.ExecContext(ctx, "ROLLBACK TO SAVEPOINT belfry"); err != nil {
			return errors.Join(failed, err)
		}
	}
	_, err := c.tx.ExecContext(ctx, "RELEASE SAVEPOINT belfry")
	return errors.Join(failed, err)
}
