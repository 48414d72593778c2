package pgstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/belfryhq/belfry/store"
	"github.com/belfryhq/belfry/store/internal/sqlstore"
)

// sqlStore is the part that all SQL databases share.
type sqlStore = sqlstore.Store

// Store keeps messages in PostgreSQL. All methods may be called concurrently.
type Store struct {
	*sqlStore
	db       *database
	pool     *pgxpool.Pool
	settings Settings
	owned    bool // the pool is ours to close
	waker    *waker

	closing sync.Once
}

var (
	_ store.Store      = (*Store)(nil)
	_ store.Clocker    = (*Store)(nil)
	_ store.Paralleler = (*Store)(nil)
)

// Open connects to the database that a URL names, see ParseURL, and brings its tables up to date. Settings that are not zero
// hold before those of the URL. It fails with ErrNewerSchema when a newer version of the program has made the tables.
func Open(ctx context.Context, address string, settings Settings) (*Store, error) {
	rest, given, err := ParseURL(address)
	if err != nil {
		return nil, err
	}
	settings, err = settings.over(given).withDefaults()
	if err != nil {
		return nil, err
	}
	conf, err := settings.config(rest)
	if err != nil {
		return nil, err
	}
	m := newMigrator(conf.ConnConfig, settings)
	if err := m.ready(ctx); err != nil {
		if code(err) == codeProtocol && !settings.Pooled {
			return nil, fmt.Errorf("open PostgreSQL: %w: if a pooler such as PgBouncer is in between, say so by pooled=true", err)
		}
		return nil, fmt.Errorf("open PostgreSQL: %w", plain(err))
	}
	pool, err := pgxpool.NewWithConfig(ctx, conf)
	if err != nil {
		return nil, fmt.Errorf("open PostgreSQL: %w", err)
	}
	s, err := newStore(pool, settings)
	if err != nil {
		pool.Close()
		return nil, err
	}
	s.owned = true
	if err := s.Recover(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// plain returns the error of a connection on one line: what went wrong at the first address.
func plain(err error) error {
	var failed *pgconn.ConnectError
	if !errors.As(err, &failed) {
		return err
	}
	cause, _, _ := strings.Cut(failed.Unwrap().Error(), "\n")
	return fmt.Errorf("it cannot be reached: %s", strings.TrimSpace(cause))
}

// New returns a Store on a pool of the caller's, whose database has the tables (see Migrator). Close leaves the pool open. Of
// the settings only Schema, Prefix and Pooled count.
func New(ctx context.Context, pool *pgxpool.Pool, settings Settings) (*Store, error) {
	settings, err := settings.withDefaults()
	if err != nil {
		return nil, err
	}
	s, err := newStore(pool, settings)
	if err != nil {
		return nil, err
	}
	return s, s.Recover(ctx)
}

// over returns the settings, with the other ones where they are zero.
func (s Settings) over(other Settings) Settings {
	if s.Schema == "" {
		s.Schema = other.Schema
	}
	if s.Prefix == "" {
		s.Prefix = other.Prefix
	}
	if s.Connections == 0 {
		s.Connections = other.Connections
	}
	if s.StatementTimeout == 0 {
		s.StatementTimeout = other.StatementTimeout
	}
	s.Pooled = s.Pooled || other.Pooled
	return s
}

func newStore(pool *pgxpool.Pool, settings Settings) (*Store, error) {
	d, err := dialect(settings)
	if err != nil {
		return nil, err
	}
	db := &database{pool: pool}
	shared, err := sqlstore.New(db, d)
	if err != nil {
		return nil, err
	}
	s := &Store{sqlStore: shared, db: db, pool: pool, settings: settings}
	s.waker = newWaker(pool, settings)
	s.WakeBy(s.waker.tell)
	return s, nil
}

// Ping answers nil when the server can be written to.
func (s *Store) Ping(ctx context.Context) error {
	leave, err := s.db.enter()
	if err != nil {
		return err
	}
	defer leave()
	var standby bool
	err = s.pool.QueryRow(ctx, "SELECT pg_is_in_recovery() OR current_setting('transaction_read_only')::bool").Scan(&standby)
	if err == nil && standby {
		s.pool.Reset()
		err = errors.New("the server only reads: it is a standby, or was made read-only")
	}
	if err != nil {
		return fmt.Errorf("ping: %w", err)
	}
	return nil
}

// Parallel returns how many writes of one kind keep the server busy without waiting for each other's commits.
func (s *Store) Parallel() int { return max(1, min(4, s.settings.Connections/3)) }

// Now returns the server's clock.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	leave, err := s.db.enter()
	if err != nil {
		return time.Time{}, err
	}
	defer leave()
	var now time.Time
	if err := s.pool.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&now); err != nil {
		return time.Time{}, fmt.Errorf("read the server's clock: %w", err)
	}
	return now.UTC(), nil
}

// Close waits for what is under way and closes the connections.
func (s *Store) Close() error {
	s.closing.Do(func() {
		s.waker.close()
		s.db.close()
		if s.owned {
			s.pool.Close()
		}
	})
	return nil
}
