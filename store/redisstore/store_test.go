package redisstore_test

import (
	"os"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/belfryhq/belfry/internal/testserver"
	"github.com/belfryhq/belfry/store"
	"github.com/belfryhq/belfry/store/redisstore"
	"github.com/belfryhq/belfry/store/storetest"
)

func TestMain(m *testing.M) {
	logging.Disable()
	testserver.Main(m)
}

// servers opens stores on one kind of server and knows the URL of each.
type servers struct {
	url  func(testing.TB) string
	urls sync.Map
}

func (s *servers) open(t testing.TB) store.Store { return s.openAt(t, s.url(t)) }

func (s *servers) openAt(t testing.TB, url string) store.Store {
	t.Helper()
	opened := openURL(t, url, redisstore.Settings{})
	s.urls.Store(store.Store(opened), url)
	return opened
}

// openURL opens a store and closes it at the end of the test.
func openURL(t testing.TB, url string, settings redisstore.Settings) *redisstore.Store {
	t.Helper()
	s, err := redisstore.Open(t.Context(), url, settings)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// reopen closes a store and opens what it kept.
func (s *servers) reopen(t testing.TB, old store.Store) store.Store {
	t.Helper()
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	url, _ := s.urls.LoadAndDelete(old)
	return s.openAt(t, url.(string))
}

// options are those of the suite: BELFRY_SCALE=full runs it with a million messages.
func (s *servers) options() storetest.Options {
	o := storetest.Options{Reopen: s.reopen}
	if os.Getenv("BELFRY_SCALE") == "full" {
		o.Scale = storetest.Full
	}
	return o
}

func TestStore(t *testing.T) {
	s := servers{url: testserver.Redis}
	storetest.Run(t, s.open, s.options())
}

func TestModel(t *testing.T) {
	s := servers{url: testserver.Redis}
	storetest.RunModel(t, s.open, s.options())
}

func TestClusterStore(t *testing.T) {
	s := servers{url: testserver.RedisCluster}
	storetest.Run(t, s.open, s.options())
}

func TestClusterModel(t *testing.T) {
	s := servers{url: testserver.RedisCluster}
	storetest.RunModel(t, s.open, s.options())
}

func TestSentinelStore(t *testing.T) {
	sentinel := testserver.StartRedisSentinel(t)
	s := servers{url: func(testing.TB) string { return sentinel.URL + "&prefix=" + prefix() }}
	o := s.options()
	o.Scale = storetest.Small // its server waits for the disk with every write
	storetest.Run(t, s.open, o)
	t.Run("model", func(t *testing.T) { storetest.RunModel(t, s.open, o) })
}

func BenchmarkStore(b *testing.B) {
	s := servers{url: testserver.Redis}
	storetest.Benchmark(b, s.open, s.options())
}

// rawClient returns a client of the server that a store is on.
func rawClient(t testing.TB, url string) *redis.Client {
	t.Helper()
	o, err := redis.ParseURL(plain(url))
	if err != nil {
		t.Fatal(err)
	}
	c := redis.NewClient(o)
	t.Cleanup(func() { _ = c.Close() })
	return c
}
