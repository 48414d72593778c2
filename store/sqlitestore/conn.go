package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"zombiezen.com/go/sqlite"

	"github.com/belfryhq/belfry/store/internal/sqlstore"
)

// conn is a connection with its prepared statements. One goroutine uses it at a time.
type conn struct {
	db         *sqlite.Conn
	statements map[*sqlstore.Query]*statement
	scripts    map[string]*sqlite.Stmt // BEGIN, COMMIT and the like
}

// open opens the file and runs the pragmas.
func open(path string, flags sqlite.OpenFlags, pragmas ...string) (*conn, error) {
	db, err := sqlite.OpenConn(path, flags)
	if err != nil {
		return nil, err
	}
	c := &conn{db: db, statements: make(map[*sqlstore.Query]*statement), scripts: make(map[string]*sqlite.Stmt)}
	for _, pragma := range pragmas {
		if _, err := c.run("PRAGMA " + pragma); err != nil {
			return nil, errors.Join(err, db.Close())
		}
	}
	return c, nil
}

func (c *conn) close() error { return c.db.Close() }

// run executes a statement without arguments and returns its first row as text.
func (c *conn) run(text string) ([]string, error) {
	stmt := c.scripts[text]
	if stmt == nil {
		var err error
		if stmt, err = c.db.Prepare(text); err != nil {
			return nil, err
		}
		c.scripts[text] = stmt
	}
	var row []string
	for {
		more, err := stmt.Step()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", text, err)
		}
		if !more {
			return row, stmt.Reset()
		}
		for i := len(row); i < stmt.ColumnCount(); i++ {
			row = append(row, stmt.ColumnText(i))
		}
	}
}

// prepare returns the query's statement on this connection.
func (c *conn) prepare(q *sqlstore.Query) (*statement, error) {
	s := c.statements[q]
	if s == nil {
		stmt, err := c.db.Prepare(q.SQL)
		if err != nil {
			return nil, err
		}
		s = newStatement(stmt)
		c.statements[q] = s
	}
	return s, nil
}

// Exec runs a query for each list of arguments.
func (c *conn) Exec(_ context.Context, q *sqlstore.Query, n int, args func(i int) []any, touched func(i int, rows int64)) error {
	s, err := c.prepare(q)
	if err != nil {
		return err
	}
	for i := range n {
		s.bindAll(args(i))
		if _, err := s.stmt.Step(); err != nil {
			s.forget()
			return err
		}
		if touched != nil {
			touched(i, int64(c.db.Changes()))
		}
		if err := s.stmt.Reset(); err != nil {
			return err
		}
	}
	return nil
}

// Query runs a query for each list of arguments and reads its rows.
func (c *conn) Query(_ context.Context, q *sqlstore.Query, n int, args func(i int) []any, row func(i int, r sqlstore.Row) error) error {
	s, err := c.prepare(q)
	if err != nil {
		return err
	}
	for i := range n {
		s.bindAll(args(i))
		if err := s.rows(func() error { return row(i, s) }); err != nil {
			s.forget()
			return errors.Join(err, s.stmt.Reset())
		}
	}
	return nil
}

// rows steps through the result and resets the statement at its end.
func (s *statement) rows(row func() error) error {
	for {
		more, err := s.stmt.Step()
		if err != nil {
			return err
		}
		if !more {
			return s.stmt.Reset()
		}
		if err := row(); err != nil {
			return err
		}
	}
}

// Savepoint runs f and undoes it when it fails.
func (c *conn) Savepoint(_ context.Context, f func() error) error {
	if _, err := c.run("SAVEPOINT undo"); err != nil {
		return err
	}
	failed := f()
	if failed != nil {
		if _, err := c.run("ROLLBACK TO undo"); err != nil {
			return errors.Join(failed, err)
		}
	}
	if _, err := c.run("RELEASE undo"); err != nil {
		return errors.Join(failed, err)
	}
	return failed
}

// statement is a prepared statement with what was bound and read last: most texts of a batch repeat, and a text that
// repeats need not be copied again.
type statement struct {
	stmt    *sqlite.Stmt
	bound   []bound
	scanned []string
	scratch [maxRepeat]byte
}

// bound is the last value of an argument.
type bound struct {
	kind kind
	i    int64
	s    string
}

type kind uint8

const (
	unbound kind = iota // or a value that is not remembered
	null
	integer
	text
)

// maxRepeat is how long a text may be to be remembered.
const maxRepeat = 128

func newStatement(stmt *sqlite.Stmt) *statement {
	return &statement{
		stmt: stmt, bound: make([]bound, stmt.BindParamCount()+1), scanned: make([]string, stmt.ColumnCount()),
	}
}

// forget makes the next call bind every argument again, since an error leaves open which ones were bound.
func (s *statement) forget() { clear(s.bound) }

func (s *statement) bindAll(args []any) {
	for i, arg := range args[:len(s.bound)-1] {
		s.bind(i+1, arg)
	}
}

func (s *statement) bind(i int, arg any) {
	switch v := arg.(type) {
	case *int64:
		s.bindInt(i, *v)
	case *string:
		s.bindText(i, *v)
	case *[]byte:
		s.bindBytes(i, *v)
	case *sql.NullInt64:
		s.bindNullInt(i, *v)
	case int64:
		s.bindInt(i, v)
	case string:
		s.bindText(i, v)
	case []byte:
		s.bindBytes(i, v)
	case sql.NullInt64:
		s.bindNullInt(i, v)
	default:
		panic(fmt.Sprintf("sqlitestore: an argument of type %T", arg))
	}
}

func (s *statement) bindInt(i int, v int64) {
	if b := &s.bound[i]; b.kind != integer || b.i != v {
		*b = bound{kind: integer, i: v}
		s.stmt.BindInt64(i, v)
	}
}

func (s *statement) bindText(i int, v string) {
	b := &s.bound[i]
	if b.kind == text && b.s == v {
		return
	}
	*b = bound{}
	if len(v) <= maxRepeat {
		*b = bound{kind: text, s: v}
	}
	s.stmt.BindText(i, v)
}

func (s *statement) bindNull(i int) {
	if s.bound[i].kind != null {
		s.bound[i] = bound{kind: null}
		s.stmt.BindNull(i)
	}
}

func (s *statement) bindBytes(i int, v []byte) {
	if v == nil {
		s.bindNull(i)
		return
	}
	s.bound[i] = bound{}
	s.stmt.BindBytes(i, v)
}

func (s *statement) bindNullInt(i int, v sql.NullInt64) {
	if v.Valid {
		s.bindInt(i, v.Int64)
	} else {
		s.bindNull(i)
	}
}

// Scan reads the columns of the current row.
func (s *statement) Scan(dest ...any) error {
	for i, d := range dest {
		switch d := d.(type) {
		case *int64:
			*d = s.stmt.ColumnInt64(i)
		case *string:
			*d = s.text(i)
		case *[]byte:
			*d = s.bytes(i)
		case *sql.NullInt64:
			*d = sql.NullInt64{Valid: !s.stmt.ColumnIsNull(i)}
			if d.Valid {
				d.Int64 = s.stmt.ColumnInt64(i)
			}
		default:
			return fmt.Errorf("column %d: a destination of type %T", i, d)
		}
	}
	return nil
}

// text returns a column as the string that the row before had, if it has the same.
func (s *statement) text(i int) string {
	n := s.stmt.ColumnLen(i)
	if n == 0 {
		return ""
	}
	if n > maxRepeat {
		return s.stmt.ColumnText(i)
	}
	read := s.scratch[:s.stmt.ColumnBytes(i, s.scratch[:])]
	if last := s.scanned[i]; string(read) == last {
		return last
	}
	s.scanned[i] = string(read)
	return s.scanned[i]
}

func (s *statement) bytes(i int) []byte {
	if s.stmt.ColumnIsNull(i) {
		return nil
	}
	b := make([]byte, s.stmt.ColumnLen(i))
	s.stmt.ColumnBytes(i, b)
	return b
}
