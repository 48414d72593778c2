package testserver

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// startRedis starts Redis. Fast: it writes nothing to the disk.
func startRedis(fast bool, more ...string) (*Server, error) {
	binary, err := find("Redis", "redis-server", "redis-server", "/usr/bin")
	if err != nil {
		return nil, err
	}
	dir, err := folder("redis")
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	args := []string{"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--dir", dir, "--save", "", "--repl-diskless-sync-delay", "0"}
	if !fast {
		args = append(args, "--appendonly", "yes", "--appendfsync", "always")
	}
	args = append(args, more...)
	s := &Server{URL: fmt.Sprintf("redis://127.0.0.1:%d/0", port), Port: port, dir: dir}
	s.command = func() *exec.Cmd { return (*account)(nil).command(dir, binary, args...) }
	s.ready = func(ctx context.Context) error {
		if err := listening(ctx, port); err != nil { // the client would log it
			return err
		}
		client := redis.NewClient(&redis.Options{Addr: addr(port), MaxRetries: -1, DialerRetries: 1})
		defer client.Close()
		return client.Ping(ctx).Err()
	}
	return s, s.Start()
}

// listening reports whether somebody listens on a port.
func listening(ctx context.Context, port int) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr(port))
	if err != nil {
		return err
	}
	return conn.Close()
}

func addr(port int) string { return "127.0.0.1:" + strconv.Itoa(port) }
