package memstore

import (
	"context"
	"sync"
	"time"

	"github.com/tidwall/btree"

	"github.com/belfryhq/belfry/store"
)

// Store keeps messages in memory. The zero value is not usable; call New. All methods may be called concurrently.
type Store struct {
	mu     sync.Mutex
	closed chan struct{} // closed by Close, under mu

	queues map[string]*queue
	names  *btree.BTreeG[*queue]  // the same queues in the order of their names
	purge  *btree.BTreeG[*record] // what Purge will remove, by PurgeAt
	last   int64                  // no version above this one was ever given away by a message that is gone, nor as a first version

	docs docs
	wake listeners

	opened []store.QueueHint // gates that opened in the operation under way
}

var (
	_ store.Store = (*Store)(nil)
	_ store.Waker = (*Store)(nil)
)

// New returns an empty store.
func New() *Store {
	s := &Store{
		closed: make(chan struct{}),
		queues: make(map[string]*queue),
		names:  newTree(func(a, b *queue) bool { return a.name < b.name }),
		purge:  newTree(purgesBefore),
	}
	s.docs.init(s)
	return s
}

// newTree returns an empty ordered set; the store's mutex guards it.
func newTree[T any](less func(a, b T) bool) *btree.BTreeG[T] {
	return btree.NewBTreeGOptions(less, btree.Options{NoLocks: true})
}

// enter begins an operation: it takes the mutex unless the store is closed or the caller has given up.
func (s *Store) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	if s.isClosed() {
		s.mu.Unlock()
		return store.ErrClosed
	}
	return nil
}

// exit ends an operation and wakes those whom the gates it opened concern.
func (s *Store) exit() {
	opened := s.opened
	s.opened = nil
	s.mu.Unlock()
	if len(opened) > 0 {
		s.tell(opened)
	}
}

func (s *Store) isClosed() bool {
	select {
	case <-s.closed:
		return true
	default:
		return false
	}
}

// Ping answers nil until the store is closed.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	s.mu.Unlock()
	return nil
}

// Inspect says that nothing survives the process.
func (s *Store) Inspect(ctx context.Context) (store.Info, error) {
	if err := s.enter(ctx); err != nil {
		return store.Info{}, err
	}
	s.mu.Unlock()
	return store.Info{Name: "memory", Durability: store.Volatile}, nil
}

// Docs returns the records that are not messages.
func (s *Store) Docs() store.Docs { return &s.docs }

// Close ends the store and every Listen, and lets go of what it kept.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isClosed() {
		return nil
	}
	close(s.closed)
	s.queues = nil
	s.names.Clear()
	s.purge.Clear()
	s.docs.clear()
	return nil
}

// firstVersion returns the version of a message that is new under its id: the instant in microseconds, or more where
// that was given away before, so that no id ever repeats one.
func (s *Store) firstVersion(now time.Time) int64 {
	s.last = max(now.UnixMicro(), s.last+1)
	return s.last
}
