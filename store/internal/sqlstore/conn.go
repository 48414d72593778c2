package sqlstore

import (
	"context"
	"errors"
	"fmt"
)

// DB is a database as the store uses it.
type DB interface {
	// Write runs f in a transaction of its own effect: what f did is durable when Write returns nil, and undone
	// when f or Write returns an error. f may be run again after it was undone, so it begins with a clean slate
	// each time. How the transaction reaches the disk, alone or with others, is the database's business.
	Write(ctx context.Context, load Load, f func(context.Context, Conn) error) error
	// Read runs f on one snapshot of the database.
	Read(ctx context.Context, f func(context.Context, Conn) error) error
}

// Load is about how much a write brings: what a database that joins writes into one transaction bounds it by.
type Load struct {
	Rows  int
	Bytes int
}

// Conn runs queries in the transaction that is under way. It is used by one goroutine at a time.
//
// Both methods take n lists of arguments, so that a driver with a pipeline sends them in one round trip. args(i) is the
// i-th list; the slice is valid until the next call of args, what it points to until the method returns. An argument
// is an int64, string, []byte or sql.NullInt64, or a pointer to one of them.
type Conn interface {
	// Exec runs the query for each list of arguments in turn and tells, if touched is not nil, how many rows it
	// changed.
	Exec(ctx context.Context, q *Query, n int, args func(i int) []any, touched func(i int, rows int64)) error
	// Query runs the query for each list of arguments in turn and calls row with each row it returns. It ends at
	// the first error of row, and returns it.
	Query(ctx context.Context, q *Query, n int, args func(i int) []any, row func(i int, r Row) error) error
	// Savepoint runs f and undoes what it did when it returns an error, which Savepoint returns.
	Savepoint(ctx context.Context, f func() error) error
}

// Row is a row that a query returned.
type Row interface {
	// Scan writes the row's first columns to the destinations: *int64, *string, *[]byte or *sql.NullInt64. A NULL
	// becomes a nil slice; what it becomes in an int64 or a string is undefined.
	Scan(dest ...any) error
}

// errStop ends a query from within its row function.
var errStop = errors.New("stop")

// exec runs a query once and returns how many rows it changed.
func exec(ctx context.Context, c Conn, q *Query, args ...any) (int64, error) {
	var touched int64
	err := c.Exec(ctx, q, 1, func(int) []any { return args }, func(_ int, rows int64) { touched = rows })
	if err != nil {
		return 0, fmt.Errorf("%s: %w", q.Name, err)
	}
	return touched, nil
}

// execEach runs a query for each list of arguments.
func execEach(ctx context.Context, c Conn, q *Query, n int, args func(i int) []any, touched func(i int, rows int64)) error {
	if n == 0 {
		return nil
	}
	if err := c.Exec(ctx, q, n, args, touched); err != nil {
		return fmt.Errorf("%s: %w", q.Name, err)
	}
	return nil
}

// query runs a query once. row may return errStop to see no more rows.
func query(ctx context.Context, c Conn, q *Query, row func(Row) error, args ...any) error {
	return queryEach(ctx, c, q, 1, func(int) []any { return args }, func(_ int, r Row) error { return row(r) })
}

// queryEach runs a query for each list of arguments.
func queryEach(ctx context.Context, c Conn, q *Query, n int, args func(i int) []any, row func(i int, r Row) error) error {
	if n == 0 {
		return nil
	}
	err := c.Query(ctx, q, n, args, row)
	if err != nil && !errors.Is(err, errStop) {
		return fmt.Errorf("%s: %w", q.Name, err)
	}
	return nil
}

// first reads the first row of a query and reports whether there is one.
func first(ctx context.Context, c Conn, q *Query, dest []any, args ...any) (bool, error) {
	found := false
	err := query(ctx, c, q, func(r Row) error {
		found = true
		if err := r.Scan(dest...); err != nil {
			return err
		}
		return errStop
	}, args...)
	return found, err
}
