package testserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/redis/go-redis/v9"
)

// Sentinel is a Redis master with a replica, watched by one sentinel that makes the replica the master when it is gone.
type Sentinel struct {
	URL             string
	Master, Replica *Server

	sentinel *Server
}

// MasterName is what the sentinel calls the master.
const MasterName = "belfry"

func startSentinel(fast bool) (s *Sentinel, err error) {
	s = &Sentinel{}
	defer func() {
		if err != nil {
			s.remove()
		}
	}()
	if s.Master, err = startRedis(fast); err != nil {
		return s, err
	}
	if s.Replica, err = startRedis(fast, "--replicaof", fmt.Sprintf("127.0.0.1 %d", s.Master.Port)); err != nil {
		return s, err
	}
	if s.sentinel, err = watch(s.Master.Port); err != nil {
		return s, err
	}
	s.URL = fmt.Sprintf("redis+sentinel://127.0.0.1:%d/0?master=%s", s.sentinel.Port, MasterName)
	return s, s.await()
}

// watch starts a sentinel.
func watch(master int) (*Server, error) {
	binary, err := find("Redis", "redis-server", "redis-server", "/usr/bin")
	if err != nil {
		return nil, err
	}
	dir, err := folder("sentinel")
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	conf := filepath.Join(dir, "sentinel.conf")
	text := fmt.Sprintf("port %d\nbind 127.0.0.1\ndir %s\nsentinel monitor %[3]s 127.0.0.1 %[4]d 1\n"+
		"sentinel down-after-milliseconds %[3]s 500\nsentinel failover-timeout %[3]s 2000\n", port, dir, MasterName, master)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		return nil, err
	}
	s := &Server{Port: port, dir: dir}
	s.command = func() *exec.Cmd { return (*account)(nil).command(dir, binary, conf, "--sentinel") }
	s.ready = func(ctx context.Context) error {
		if err := listening(ctx, port); err != nil {
			return err
		}
		client := redis.NewSentinelClient(&redis.Options{Addr: addr(port), MaxRetries: -1, DialerRetries: 1})
		defer client.Close()
		return client.GetMasterAddrByName(ctx, MasterName).Err()
	}
	return s, s.Start()
}

// await waits until the sentinel knows the replica.
func (s *Sentinel) await() error {
	client := redis.NewSentinelClient(&redis.Options{Addr: addr(s.sentinel.Port)})
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), readyWithin)
	defer cancel()
	for ctx.Err() == nil {
		replicas, err := client.Replicas(ctx, MasterName).Result()
		if err == nil && len(replicas) == 1 {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return errors.New("the sentinel does not see the replica")
}

func (s *Sentinel) remove() {
	for _, server := range []*Server{s.sentinel, s.Replica, s.Master} {
		if server != nil {
			server.remove()
		}
	}
}
