package testserver

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// startPostgres starts PostgreSQL. Fast: what it acknowledged need not survive a power cut.
func startPostgres(fast bool) (*Server, error) {
	binary, err := find("PostgreSQL", "postgres", "postgresql", "/usr/lib/postgresql/*/bin")
	if err != nil {
		return nil, err
	}
	if binary, err = filepath.EvalSymlinks(binary); err != nil { // initdb is beside it
		return nil, err
	}
	dir, err := folder("postgres")
	if err != nil {
		return nil, err
	}
	account := serviceAccount("postgres")
	if err := account.own(dir); err != nil {
		return nil, err
	}
	data := filepath.Join(dir, "data")
	initdb := account.command(dir, filepath.Join(filepath.Dir(binary), "initdb"),
		"-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync")
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w: %s", err, out)
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	args := []string{"-D", data, "-p", strconv.Itoa(port), "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=" + dir,
		"-c", "max_connections=300"}
	if fast {
		args = append(args, "-c", "fsync=off", "-c", "full_page_writes=off")
	}
	s := &Server{URL: fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", port), Port: port, dir: dir}
	s.command = func() *exec.Cmd { return account.command(dir, binary, args...) }
	s.ready = func(ctx context.Context) error {
		conn, err := pgx.Connect(ctx, s.URL)
		if err != nil {
			return err
		}
		return conn.Close(ctx)
	}
	s.stop = syscall.SIGINT // without waiting until all clients have gone
	s.settled = func() { awaitFree(port) }
	return s, s.Start()
}

// awaitFree waits until nobody listens on a port and the backends of a killed server have had time to notice.
func awaitFree(port int) {
	for range 500 {
		conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			break
		}
		_ = conn.Close()
		time.Sleep(10 * time.Millisecond)
	}
}

// createPostgres makes an empty database on a server and returns its URL and what removes it.
func createPostgres(ctx context.Context, server, name string) (address string, remove func() error, err error) {
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		return "", nil, err
	}
	if _, err := conn.Exec(ctx, "CREATE DATABASE "+name+" TEMPLATE template0"); err != nil {
		return "", nil, err
	}
	if err := conn.Close(ctx); err != nil {
		return "", nil, err
	}
	return withPath(server, name), func() error {
		conn, err := pgx.Connect(context.Background(), server)
		if err != nil {
			return err
		}
		defer conn.Close(context.Background())
		_, err = conn.Exec(context.Background(), "DROP DATABASE "+name+" WITH (FORCE)")
		return err
	}, nil
}
