package testserver

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
)

func TestMain(m *testing.M) { Main(m) }

// kept writes something to a server and returns what reads it back.
type kept func(t *testing.T, s *Server) (read func() error)

func keptInPostgres(t *testing.T, s *Server) func() error {
	conn, err := pgx.Connect(t.Context(), s.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), "CREATE TABLE kept AS SELECT 1 AS n"); err != nil {
		t.Fatal(err)
	}
	return func() error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		conn, err := pgx.Connect(ctx, s.URL)
		if err != nil {
			return err
		}
		defer conn.Close(t.Context())
		var n int
		return conn.QueryRow(ctx, "SELECT n FROM kept").Scan(&n)
	}
}

func keptInMySQL(t *testing.T, s *Server) func() error {
	db, err := openMySQL(s.URL + "mysql")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("CREATE TABLE kept ENGINE=InnoDB AS SELECT 1 AS n"); err != nil {
		t.Fatal(err)
	}
	return func() error {
		var db *sql.DB
		db, err := openMySQL(s.URL + "mysql")
		if err != nil {
			return err
		}
		defer db.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var n int
		return db.QueryRowContext(ctx, "SELECT n FROM kept").Scan(&n)
	}
}

func keptInRedis(t *testing.T, s *Server) func() error {
	o, err := redis.ParseURL(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	o.DialerRetries, o.MaxRetries = 1, -1
	client := redis.NewClient(o)
	t.Cleanup(func() { _ = client.Close() })
	if err := client.Set(t.Context(), "kept", 1, 0).Err(); err != nil {
		t.Fatal(err)
	}
	return func() error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		return client.Get(ctx, "kept").Err()
	}
}

func TestAServerKeepsItsDataWhenItIsKilledAndStartedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		start func(t testing.TB) *Server
		kept  kept
	}{
		"PostgreSQL": {StartPostgres, keptInPostgres},
		"MariaDB":    {StartMySQL, keptInMySQL},
		"Redis":      {func(t testing.TB) *Server { return StartRedis(t) }, keptInRedis},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := c.start(t)
			read := c.kept(t, s)
			if err := s.Kill(); err != nil {
				t.Fatal(err)
			}
			if err := read(); err == nil {
				t.Error("it answers although it was killed")
			}
			if err := s.Start(); err != nil {
				t.Fatal(err)
			}
			if err := read(); err != nil {
				t.Errorf("after a kill: %v", err)
			}
			if err := s.Freeze(); err != nil {
				t.Fatal(err)
			}
			if err := read(); err == nil {
				t.Error("it answers although it is frozen")
			}
			if err := s.Thaw(); err != nil {
				t.Fatal(err)
			}
			if err := read(); err != nil {
				t.Errorf("after it was thawed: %v", err)
			}
			if err := s.Stop(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestTestsShareAServerButNoData(t *testing.T) {
	for name, fresh := range map[string]func(testing.TB) string{
		"PostgreSQL": Postgres, "MariaDB": MySQL, "Redis": Redis, "Redis Cluster": RedisCluster,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := fresh(t), fresh(t)
			if a == b {
				t.Errorf("two tests got %s", a)
			}
			if !strings.Contains(a, "127.0.0.1") {
				t.Errorf("the URL is %s", a)
			}
		})
	}
}

func TestASentinelNamesTheMaster(t *testing.T) {
	s := StartRedisSentinel(t)
	client := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: MasterName, SentinelAddrs: []string{addr(s.sentinel.Port)}})
	defer client.Close()
	if err := client.Set(t.Context(), "k", 1, 0).Err(); err != nil {
		t.Fatal(err)
	}
}

func TestAClusterHasReplicasThatTakeOver(t *testing.T) {
	c := StartRedisCluster(t, 1)
	if err := c.Nodes[0].Kill(); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(30 * time.Second)
	for {
		client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{addr(c.Nodes[1].Port)}})
		err := client.Set(t.Context(), "{b}", 1, 0).Err() // slot 3300, of the first master
		_ = client.Close()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
