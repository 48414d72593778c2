package testserver

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Kind is a kind of server that many tests can share.
type Kind struct {
	// Name is what it is called in messages, Variable the environment variable that names one that is given.
	Name, Variable string

	start func(fast bool) (address string, stop func(), err error)
	once  sync.Once
	url   string
	err   error
}

// The kinds.
var (
	postgres = &Kind{Name: "PostgreSQL", Variable: "BELFRY_TEST_POSTGRES_URL", start: one(startPostgres)}
	mysql    = &Kind{Name: "MariaDB", Variable: "BELFRY_TEST_MYSQL_URL", start: one(startMySQL)}
	redis1   = &Kind{Name: "Redis", Variable: "BELFRY_TEST_REDIS_URL", start: one(func(fast bool) (*Server, error) { return startRedis(fast) })}
	cluster  = &Kind{Name: "Redis Cluster", Variable: "BELFRY_TEST_REDIS_CLUSTER_URL", start: func(fast bool) (string, func(), error) {
		c, err := startCluster(fast, 0)
		if err != nil {
			return "", nil, err
		}
		return c.URL, func() { _ = c.remove() }, nil
	}}
	kinds = []*Kind{postgres, mysql, redis1, cluster}
)

func one(start func(fast bool) (*Server, error)) func(fast bool) (string, func(), error) {
	return func(fast bool) (string, func(), error) {
		s, err := start(fast)
		if err != nil {
			return "", nil, err
		}
		return s.URL, s.remove, nil
	}
}

var (
	stopsMu sync.Mutex
	stops   []func() // of the servers that this process started
)

// address returns the server's URL and starts it if nobody has. Fast: what it acknowledges need not survive a power cut.
func (k *Kind) address(fast bool) (string, error) {
	k.once.Do(func() {
		if k.url = os.Getenv(k.Variable); k.url != "" {
			return
		}
		var stop func()
		if k.url, stop, k.err = k.start(fast); k.err == nil {
			stopsMu.Lock()
			defer stopsMu.Unlock()
			stops = append(stops, stop)
		}
	})
	return k.url, k.err
}

// Main is TestMain for packages whose tests use shared servers: it stops those that this process started.
func Main(m *testing.M) {
	code := m.Run()
	StopAll()
	os.Exit(code)
}

// StopAll stops the shared servers that this process started.
func StopAll() {
	stopsMu.Lock()
	defer stopsMu.Unlock()
	for _, stop := range stops {
		stop()
	}
	stops = nil
}

// StartAll starts a shared server of each kind, at once, and returns the variables that name them; what cannot be started
// is told by problem, and left out. Durable ones keep what they acknowledged through a power cut, as servers in use do.
func StartAll(durable bool, problem func(error)) []string {
	var mu sync.Mutex
	var variables []string
	var wait sync.WaitGroup
	for _, k := range kinds {
		wait.Go(func() {
			address, err := k.address(!durable)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				problem(err)
				return
			}
			variables = append(variables, k.Variable+"="+address)
		})
	}
	wait.Wait()
	return variables
}

// Required reports whether a missing server is a failure.
func Required() bool { return os.Getenv("BELFRY_REQUIRE_SERVICES") == "1" }

// check ends the test if a server could not be started.
func check(t testing.TB, err error) {
	t.Helper()
	var cannot *missing
	switch {
	case err == nil:
	case errors.As(err, &cannot) && !Required():
		t.Skipf("SKIPPED, NOT TESTED: %v", err)
	default:
		t.Fatal(err)
	}
}

// need returns a shared server's URL or ends the test.
func (k *Kind) need(t testing.TB) string {
	t.Helper()
	address, err := k.address(true)
	check(t, err)
	return address
}

var numbers atomic.Int64

// fresh returns a name that no other test has, on whatever server.
func fresh() string {
	return fmt.Sprintf("t%d_%d_%d", os.Getpid(), time.Now().UnixMilli()%1e6, numbers.Add(1))
}

// Postgres returns the URL of an empty database.
func Postgres(t testing.TB) string { return database(t, postgres, createPostgres) }

// MySQL returns the URL of an empty database.
func MySQL(t testing.TB) string { return database(t, mysql, createMySQL) }

func database(t testing.TB, k *Kind, create func(ctx context.Context, server, name string) (string, func() error, error)) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), readyWithin)
	defer cancel()
	address, remove, err := create(ctx, k.need(t), fresh())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := remove(); err != nil {
			t.Error(err)
		}
	})
	return address
}

// Redis returns the URL of a Redis server with a prefix of the test's own.
func Redis(t testing.TB) string { return redis1.need(t) + "?prefix=" + fresh() }

// RedisCluster returns the URL of a Redis Cluster with a prefix of the test's own.
func RedisCluster(t testing.TB) string { return cluster.need(t) + "?prefix=" + fresh() }

// withPath replaces the path of a URL.
func withPath(address, path string) string {
	u, err := url.Parse(address)
	if err != nil {
		return strings.TrimSuffix(address, "/") + "/" + path
	}
	u.Path = "/" + path
	return u.String()
}

// StartPostgres starts a durable PostgreSQL for one test.
func StartPostgres(t testing.TB) *Server { return own(t, startPostgres) }

// StartMySQL starts a durable MariaDB for one test.
func StartMySQL(t testing.TB) *Server { return own(t, startMySQL) }

// StartRedis starts a durable Redis for one test, with further arguments.
func StartRedis(t testing.TB, args ...string) *Server {
	return own(t, func(fast bool) (*Server, error) { return startRedis(fast, args...) })
}

func own(t testing.TB, start func(fast bool) (*Server, error)) *Server {
	t.Helper()
	s, err := start(false)
	check(t, err)
	t.Cleanup(s.remove)
	return s
}

// StartRedisCluster starts a cluster of three masters for one test, each with so many replicas.
func StartRedisCluster(t testing.TB, replicas int) *Cluster {
	t.Helper()
	c, err := startCluster(false, replicas)
	check(t, err)
	t.Cleanup(func() { _ = c.remove() })
	return c
}

// StartRedisSentinel starts a master, a replica and a sentinel for one test.
func StartRedisSentinel(t testing.TB) *Sentinel {
	t.Helper()
	s, err := startSentinel(false)
	check(t, err)
	t.Cleanup(s.remove)
	return s
}
