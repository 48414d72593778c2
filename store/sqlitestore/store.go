package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"

	"zombiezen.com/go/sqlite"

	"github.com/belfryhq/belfry/store"
	"github.com/belfryhq/belfry/store/internal/sqlstore"
)

// sqlStore is the part that all SQL databases share.
type sqlStore = sqlstore.Store

// Store keeps messages in a SQLite file. All methods may be called concurrently. It is also a store.Waker, for all that
// share it.
type Store struct {
	*sqlStore
	path       string
	lock       *lock
	writer     *writer
	readers    *readers
	checkpoint *checkpointer
	waker      waker

	closing sync.Once
	closed  error
}

var (
	_ store.Store = (*Store)(nil)
	_ store.Waker = (*Store)(nil)
)

// Open opens the file at the path, which it creates, with its tables brought up to date, where there is none. Every
// lease in it becomes void: the message is scheduled again at its DueAt, the claim stays counted.
//
// It fails with ErrInUse while another process, or an earlier Open of this one, has the file, and with ErrNewerSchema
// when a newer version of the program has made its tables.
func Open(ctx context.Context, path string, settings Settings) (*Store, error) {
	path, err := resolve(path)
	if err != nil {
		return nil, err
	}
	lock, err := acquire(path)
	if err != nil {
		return nil, err
	}
	if err := create(path); err != nil {
		return nil, errors.Join(fmt.Errorf("create %s: %w", path, err), lock.release())
	}
	s := &Store{path: path, lock: lock}
	if err := s.open(ctx, settings.withDefaults()); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", path, err), lock.release())
	}
	return s, nil
}

// create makes the file where there is none, readable by its owner alone: it holds payloads. SQLite gives its log the same
// permissions.
func create(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// open builds the store on a locked file.
func (s *Store) open(ctx context.Context, settings Settings) (err error) {
	if err := migrateUp(ctx, s.path); err != nil {
		return err
	}
	d, err := dialect()
	if err != nil {
		return err
	}
	if s.sqlStore, err = sqlstore.New(database{s}, d); err != nil {
		return err
	}
	s.waker.closed = make(chan struct{})
	s.WakeBy(s.waker.tell)
	if err := s.connect(settings); err != nil {
		return errors.Join(err, s.disconnect())
	}
	s.writer.versions = s.Versions()
	if err := s.recover(); err != nil {
		return errors.Join(err, s.disconnect())
	}
	s.writer.committed = s.checkpoint.committed
	go s.checkpoint.run()
	go s.writer.run()
	return nil
}

// connect opens the connections.
func (s *Store) connect(settings Settings) error {
	busy := fmt.Sprintf("busy_timeout = %d", settings.BusyTimeout.Milliseconds())
	sync := "synchronous = " + settings.Synchronous.String()
	c, err := open(s.path, sqlite.OpenReadWrite, busy, "journal_mode = WAL", sync,
		"wal_autocheckpoint = 0",
		fmt.Sprintf("journal_size_limit = %d", settings.Log),
		fmt.Sprintf("cache_size = -%d", settings.Cache>>10),
		fmt.Sprintf("mmap_size = %d", mapped),
		"temp_store = MEMORY", "foreign_keys = OFF")
	if err != nil {
		return err
	}
	s.writer = newWriter(c)
	page, err := c.run("PRAGMA page_size")
	if err != nil {
		return err
	}
	size, err := strconv.ParseInt(page[0], 10, 64)
	if err != nil {
		return err
	}
	if c, err = open(s.path, sqlite.OpenReadWrite, busy, sync, "wal_autocheckpoint = 0", "cache_size = -1024"); err != nil {
		return err
	}
	s.checkpoint = newCheckpointer(c, settings.Log, size)
	s.readers, err = openReaders(s.path, settings.Readers, busy, "query_only = ON", "temp_store = MEMORY",
		fmt.Sprintf("cache_size = -%d", settings.Cache>>13),
		fmt.Sprintf("mmap_size = %d", mapped))
	return err
}

// mapped is how much of the file is read through the page cache of the system without copying.
const mapped = 1 << 30

// recover reads what an earlier process left: its highest version, and its leases, which nobody holds any more.
func (s *Store) recover() error {
	c := s.writer.conn
	row, err := c.run("SELECT value FROM counters WHERE name = 'version'")
	if err != nil {
		return err
	}
	if len(row) == 0 {
		return errors.New("the counter of versions is missing: this is not a Belfry file, or a damaged one")
	}
	if s.writer.highWater, err = strconv.ParseInt(row[0], 10, 64); err != nil {
		return err
	}
	s.Versions().Saw(s.writer.highWater)
	_, err = c.run(`UPDATE messages INDEXED BY messages_leased
		SET state = 1, visible_at = due_at, owner = '', epoch = 0, stop = 0, version = version + 1 WHERE state = 2`)
	return err
}

// database is the sqlstore.DB of a Store.
type database struct{ s *Store }

// Write commits f together with whatever else is being written.
func (d database) Write(ctx context.Context, load sqlstore.Load, f func(context.Context, sqlstore.Conn) error) error {
	return d.s.writer.write(ctx, load, f)
}

// Read runs f on a snapshot.
func (d database) Read(ctx context.Context, f func(context.Context, sqlstore.Conn) error) error {
	return d.s.readers.read(ctx, f)
}

// Close waits for what is under way, closes the file and gives it up.
func (s *Store) Close() error {
	s.closing.Do(func() {
		s.waker.close()
		s.writer.close()
		s.closed = errors.Join(s.disconnect(), s.lock.release())
	})
	return s.closed
}

// disconnect closes the connections, the writer's last: it takes the log with it.
func (s *Store) disconnect() error {
	var errs []error
	if s.readers != nil {
		errs = append(errs, s.readers.close())
	}
	if s.checkpoint != nil {
		errs = append(errs, s.checkpoint.close())
	}
	if s.writer != nil {
		errs = append(errs, s.writer.conn.close())
	}
	return errors.Join(errs...)
}

// Ping answers nil when a write reaches the disk.
func (s *Store) Ping(ctx context.Context) error {
	err := s.writer.write(ctx, sqlstore.Load{Rows: 1}, func(context.Context, sqlstore.Conn) error {
		_, err := s.writer.conn.run("UPDATE counters SET value = 1 - value WHERE name = 'ping'")
		return err
	})
	if err != nil {
		return fmt.Errorf("ping %s: %w", s.path, err)
	}
	return nil
}
