package redisstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/belfryhq/belfry/store"
)

// Store keeps messages in Redis. The zero value is not usable; call Open or New. All methods may be called concurrently.
type Store struct {
	client   redis.UniversalClient
	cluster  *redis.ClusterClient // the same client where it is one; else nil
	owned    bool                 // Close closes the client
	settings Settings
	keys     keyspace
	scripts  *scripts

	mu      sync.RWMutex // held for reading by every operation
	closed  bool
	closing chan struct{} // closed when Close begins
	once    sync.Once

	known registry
	docs  docs
}

var (
	_ store.Store   = (*Store)(nil)
	_ store.Waker   = (*Store)(nil)
	_ store.Clocker = (*Store)(nil)

	_ store.Paralleler = (*Store)(nil)
)

// New returns a store on a client, which the caller closes after the store. The client must send each command once
// (MaxRetries: -1): one that repeats a write after a lost answer would take the first one's effect for somebody else's.
// Open makes such clients, and checks what New does not: that the servers can be reached and that what they hold was
// written in the form that this version reads. Of a Cluster's client only its map of the nodes is used, so that MaxRedirects does not matter;
// it must not read from replicas.
func New(client redis.UniversalClient, settings Settings) (*Store, error) {
	settings, err := settings.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("open the Redis store: %w", err)
	}
	if _, ring := client.(*redis.Ring); ring {
		return nil, errors.New("open the Redis store: a Ring spreads keys by itself; give a Cluster, or a store for each server")
	}
	s := &Store{
		client: client, settings: settings, keys: keyspace{settings.Prefix}, scripts: loadScripts(),
		closing: make(chan struct{}),
	}
	s.cluster, _ = client.(*redis.ClusterClient)
	s.docs.s = s
	return s, nil
}

// enter begins an operation unless the store is closed or the caller has given up.
func (s *Store) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.RLock()
	if s.closed {
		s.mu.RUnlock()
		return store.ErrClosed
	}
	return nil
}

// exit ends an operation.
func (s *Store) exit() { s.mu.RUnlock() }

// Ping answers nil when the servers can serve reads and writes.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.exit()
	return s.ping(ctx)
}

// ping asks one server. PING alone is answered by a replica too, and by a server that refuses writes.
func ping(ctx context.Context, node redis.UniversalClient) error {
	if err := node.Ping(ctx).Err(); err != nil {
		return fmt.Errorf("ping: %w", err)
	}
	return nil
}

// Now returns the server's clock.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	if err := s.enter(ctx); err != nil {
		return time.Time{}, err
	}
	defer s.exit()
	now, err := s.client.Time(ctx).Result()
	if err != nil {
		return time.Time{}, fmt.Errorf("read the server's clock: %w", err)
	}
	return now.UTC(), nil
}

// Parallel returns two, since a server runs one script at a time: while it does, the next batch is on its way. On a Cluster
// batches of several queues are run by several servers.
func (s *Store) Parallel() int {
	if s.cluster != nil {
		return 4
	}
	return 2
}

// Docs returns the records that are not messages.
func (s *Store) Docs() store.Docs { return &s.docs }

// Close ends every Listen, waits for what is under way and closes the client that Open made.
func (s *Store) Close() error {
	s.once.Do(func() { close(s.closing) })
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	if !s.owned {
		return nil
	}
	return s.client.Close()
}

// now is a caller's now in the forms that scripts take.
type now struct{ millis, micros int64 }

func nowOf(t time.Time) now {
	if t.IsZero() {
		return now{unset, 0}
	}
	return now{t.UnixMilli(), t.UnixMicro()}
}

// targets are the queues of a script call, each with its number.
type targets struct {
	keys    []string
	numbers map[string]int
	names   []string
}

// number returns the number of a queue in the call.
func (t *targets) number(k keyspace, queue string) int {
	n, ok := t.numbers[queue]
	if !ok {
		if t.numbers == nil {
			t.numbers = make(map[string]int, 1)
		}
		n = len(t.names) + 1
		heads, never := k.pair(queue)
		t.keys = append(t.keys, heads, never)
		t.numbers[queue], t.names = n, append(t.names, queue)
	}
	return n
}

// group returns what is equal for queues that one script call may serve: on a Cluster each queue is on its own, since it
// has a slot of its own; elsewhere one call serves all.
func (s *Store) group(queue string) string {
	if s.cluster != nil {
		return queue
	}
	return ""
}
