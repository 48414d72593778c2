package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/belfryhq/belfry/api/timers"
)

// foreignTimers reads the table of a timers platform, all of it on one snapshot.
type foreignTimers struct {
	conn *pgx.Conn
	tx   pgx.Tx
}

// openForeignTimers connects to the platform's database. The error continues a sentence and holds no password.
func openForeignTimers(ctx context.Context, url string) (*foreignTimers, error) {
	conf, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, errors.New("is no URL of a PostgreSQL database; give postgres://user:password@host/name")
	}
	dialing, cancel := context.WithTimeout(ctx, openWithin)
	defer cancel()
	conn, err := pgx.ConnectConfig(dialing, conf)
	if err != nil {
		return nil, fmt.Errorf("cannot be reached: %v", connectCause(err))
	}
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return nil, errors.Join(err, conn.Close(ctx))
	}
	return &foreignTimers{conn, tx}, nil
}

// connectCause leaves out what a failed connection says of the URL, and all tries but the first.
func connectCause(err error) error {
	var failed *pgconn.ConnectError
	if errors.As(err, &failed) {
		err = failed.Unwrap()
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	return errors.New(first)
}

func (s *foreignTimers) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = s.conn.Close(ctx) // nothing was written
}

// count returns how many timers there are, and how many pending ones are overdue by more than a time.
func (s *foreignTimers) count(ctx context.Context, late time.Duration) (all, overdue int, err error) {
	err = s.tx.QueryRow(ctx, `SELECT count(*), count(*) FILTER (WHERE status IN ('pending', 'executing') AND execute_at < now() - $1::interval)
		FROM timers`, late).Scan(&all, &overdue)
	var refused *pgconn.PgError
	if errors.As(err, &refused) && refused.Code == "42P01" {
		return 0, 0, errors.New("there is no table timers in this database")
	}
	return all, overdue, err
}

// page returns timers in the order of their ids, from the one after an id on; empty: from the first on.
func (s *foreignTimers) page(ctx context.Context, after string, limit int) ([]timers.Foreign, error) {
	where := "id > $1"
	if after == "" {
		where, after = "id >= $1", uuid.Nil.String()
	}
	rows, err := s.tx.Query(ctx, `SELECT id::text, created_at, updated_at, execute_at, callback_type::text, callback_config::text,
			status::text, last_error, executed_at, metadata::text
		FROM timers WHERE `+where+` ORDER BY id LIMIT $2`, after, limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (timers.Foreign, error) {
		var f timers.Foreign
		var created, updated, executed *time.Time
		var config, lastError, metadata *string
		err := row.Scan(&f.ID, &created, &updated, &f.ExecuteAt, &f.CallbackType, &config, &f.Status, &lastError, &executed, &metadata)
		f.CreatedAt, f.UpdatedAt, f.ExecutedAt = instantOr(created), instantOr(updated), instantOr(executed)
		f.CallbackConfig, f.Metadata = rawJSON(config), rawJSON(metadata)
		if lastError != nil {
			f.LastError = *lastError
		}
		return f, err
	})
}

// instantOr returns the instant, or zero for none.
func instantOr(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}

// rawJSON returns the JSON, or nil for none.
func rawJSON(text *string) json.RawMessage {
	if text == nil {
		return nil
	}
	return json.RawMessage(*text)
}
