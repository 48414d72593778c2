package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// bare is how many rows per second a plain loop inserts.
type bare struct {
	single, batched float64
}

// bareInserts inserts rows like those of accepted messages into the same tables with the same settings, without Belfry: one
// per transaction, and 500 per transaction.
func (b *bench) bareInserts() (bare, error) {
	var result bare
	for _, run := range []struct {
		rows int
		rate *float64
	}{{1, &result.single}, {500, &result.batched}} {
		rate, err := b.bareRate(run.rows)
		if err != nil {
			return bare{}, err
		}
		*run.rate = rate
	}
	return result, nil
}

func (b *bench) bareRate(perTransaction int) (float64, error) {
	s, err := openSQLite(b)
	if err != nil {
		return 0, err
	}
	o := s.(*onStore)
	defer o.remove()
	if err := o.store.Close(); err != nil { // the tables are made
		return 0, err
	}
	conn, err := openBare(o.path)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	insert, columns, err := prepareInsert(conn)
	if err != nil {
		return 0, err
	}
	began, rows := time.Now(), 0
	for time.Since(began) < b.span {
		if err := sqlitex.ExecuteTransient(conn, "BEGIN IMMEDIATE", nil); err != nil {
			return 0, err
		}
		for range perTransaction {
			rows++
			if err := insertRow(insert, columns, int64(rows)); err != nil {
				return 0, err
			}
		}
		if err := sqlitex.ExecuteTransient(conn, "COMMIT", nil); err != nil {
			return 0, err
		}
	}
	return float64(rows) / time.Since(began).Seconds(), nil
}

// prepareInsert prepares an insert of all columns of the table of live messages.
func prepareInsert(conn *sqlite.Conn) (*sqlite.Stmt, []string, error) {
	var columns []string
	err := sqlitex.ExecuteTransient(conn, "PRAGMA table_info(messages)", &sqlitex.ExecOptions{
		ResultFunc: func(stmt *sqlite.Stmt) error {
			columns = append(columns, stmt.ColumnText(1)+" "+stmt.ColumnText(2))
			return nil
		},
	})
	if err != nil {
		return nil, nil, err
	}
	marks := strings.TrimSuffix(strings.Repeat("?,", len(columns)), ",")
	stmt, err := conn.Prepare(fmt.Sprintf("INSERT INTO messages VALUES (%s)", marks))
	return stmt, columns, err
}

// insertRow inserts one row with the values an accepted message has.
func insertRow(stmt *sqlite.Stmt, columns []string, n int64) error {
	id, err := uuid.NewV7()
	if err != nil {
		return err
	}
	now := time.Now()
	for i, column := range columns {
		name, kind, _ := strings.Cut(column, " ")
		switch {
		case name == "n" || name == "version":
			stmt.BindInt64(i+1, now.UnixMicro()<<10+n)
		case name == "id":
			stmt.BindText(i+1, id.String())
		case name == "queue":
			stmt.BindText(i+1, "default")
		case name == "visible_at" || name == "due_at" || name == "fire_at":
			stmt.BindInt64(i+1, now.Add(time.Hour).UnixMilli())
		case name == "created_at" || name == "updated_at":
			stmt.BindInt64(i+1, now.UnixMilli())
		case name == "state":
			stmt.BindInt64(i+1, 1)
		case name == "payload":
			stmt.BindBytes(i+1, stamped(now))
		case name == "details":
			stmt.BindText(i+1, `{"retry":{"attempts":25,"backoff":"exponential","base":1000000000,"max":3600000000000,"factor":2,"jitter":0.1}}`)
		case name == "metadata" || name == "expires_at" || name == "dedup_until":
			stmt.BindNull(i + 1)
		case kind == "TEXT":
			stmt.BindText(i+1, "")
		default:
			stmt.BindInt64(i+1, 0)
		}
	}
	if _, err := stmt.Step(); err != nil {
		return err
	}
	return stmt.Reset()
}
