package main

import (
	"fmt"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/belfryhq/belfry"
)

// bareBatch is how many messages a transaction of the bare loop takes and how many it ends.
const bareBatch = 500

// bareDrain is how many messages per second a plain loop takes and ends: the same rows, indexes and settings, one
// connection, no locks, no engine. Each transaction ends the messages of the one before and takes the next ones.
func (b *bench) bareDrain(keep bool) (rate float64, err error) {
	s, err := openSQLite(b)
	if err != nil {
		return 0, err
	}
	o := s.(*onStore)
	defer o.remove()
	if err := o.fill(b.ctx, b.backlog, time.Now().Add(-time.Second), time.Second); err != nil {
		return 0, err
	}
	if err := o.store.Close(); err != nil {
		return 0, err
	}
	conn, err := openBare(o.path)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	d := &drainLoop{conn: conn, keep: keep}
	began := time.Now()
	for {
		ended := len(d.held)
		if err := d.transaction(); err != nil {
			return 0, err
		}
		if ended == 0 && len(d.held) == 0 {
			return float64(b.backlog) / time.Since(began).Seconds(), nil
		}
	}
}

// openBare opens the file as the store's writer does.
func openBare(path string) (*sqlite.Conn, error) {
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err != nil {
		return nil, err
	}
	for _, pragma := range []string{"journal_mode = WAL", "synchronous = FULL", "cache_size = -65536", "mmap_size = 1073741824"} {
		if err := sqlitex.ExecuteTransient(conn, "PRAGMA "+pragma, nil); err != nil {
			return nil, err
		}
	}
	return conn, nil
}

// drainLoop is the loop's state: the messages that it took last.
type drainLoop struct {
	conn *sqlite.Conn
	keep bool
	held []taken
}

// taken is what a settlement needs of a message.
type taken struct {
	n  int64
	id string
}

func (d *drainLoop) transaction() (err error) {
	defer sqlitex.Transaction(d.conn)(&err)
	for _, m := range d.held {
		if err := d.end(m); err != nil {
			return err
		}
	}
	return d.take()
}

const bareFinish = `INSERT INTO finished
	SELECT n, queue, id, 3, priority, due_at, fire_at, created_at, ?2, ?2, ?2 + 3600000, version + 1, attempts + 1, claims, expires_at,
		kind, target, address, content_type, group_name, parent, dedup_key, dedup_until, retain_done, retain_dead, timeout_ns,
		'', details, body, metadata, payload, ?3
	FROM messages WHERE n = ?1`

// end finds a message by its id, moves it to the finished ones if they are kept, and removes it.
func (d *drainLoop) end(m taken) error {
	var history string
	err := d.each("SELECT n, history FROM messages WHERE queue = ?1 AND id = ?2 AND state = 2",
		func(row *sqlite.Stmt) { history = row.ColumnText(1) }, belfry.DefaultQueue, m.id)
	if err != nil {
		return err
	}
	if d.keep {
		history += `{"n":1,"at":1767225600000,"ns":1000,"owner":"bench"}` + "\n"
		if err := d.each(bareFinish, nil, m.n, time.Now().UnixMilli(), history); err != nil {
			return err
		}
	}
	return d.each("DELETE FROM messages WHERE n = ?1", nil, m.n)
}

// take reads the next messages whole, and leases them.
func (d *drainLoop) take() error {
	d.held = d.held[:0]
	now := time.Now().UnixMilli()
	var read int
	err := d.each("SELECT * FROM messages WHERE queue = ?1 AND priority = 0 AND visible_at <= ?2 ORDER BY visible_at, id LIMIT ?3",
		func(row *sqlite.Stmt) {
			for i := range row.ColumnCount() {
				read += len(row.ColumnText(i))
			}
			d.held = append(d.held, taken{row.ColumnInt64(0), row.ColumnText(2)})
		}, belfry.DefaultQueue, now, bareBatch)
	if err != nil {
		return err
	}
	for _, m := range d.held {
		err := d.each(`UPDATE messages SET state = 2, visible_at = ?2, owner = 'bench', epoch = 1, claims = claims + 1, version = version + 1,
			updated_at = ?3 WHERE n = ?1`, nil, m.n, now+30_000, now)
		if err != nil {
			return err
		}
	}
	return nil
}

// each runs a prepared statement and calls row for every row.
func (d *drainLoop) each(text string, row func(*sqlite.Stmt), args ...any) error {
	stmt, err := d.conn.Prepare(text)
	if err != nil {
		return err
	}
	for i, arg := range args {
		switch v := arg.(type) {
		case int64:
			stmt.BindInt64(i+1, v)
		case int:
			stmt.BindInt64(i+1, int64(v))
		case string:
			stmt.BindText(i+1, v)
		default:
			return fmt.Errorf("an argument of type %T", arg)
		}
	}
	for {
		more, err := stmt.Step()
		if err != nil {
			return err
		}
		if !more {
			return stmt.Reset()
		}
		if row != nil {
			row(stmt)
		}
	}
}
