package testserver

import (
	"context"
	"database/sql"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	_ "github.com/go-sql-driver/mysql" // registers the driver
)

// startMySQL starts MariaDB.
func startMySQL(fast bool) (*Server, error) {
	binary, err := find("MariaDB", "mariadbd", "mariadb-server", "/usr/sbin")
	if err != nil {
		return nil, err
	}
	install, err := find("MariaDB", "mariadb-install-db", "mariadb-server", "/usr/bin")
	if err != nil {
		return nil, err
	}
	dir, err := folder("mysql")
	if err != nil {
		return nil, err
	}
	account := serviceAccount("mysql")
	if err := account.own(dir); err != nil {
		return nil, err
	}
	data := "--datadir=" + filepath.Join(dir, "data")
	setup := account.command(dir, install, "--no-defaults", data, "--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve")
	if out, err := setup.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("mariadb-install-db: %w: %s", err, out)
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	args := []string{"--no-defaults", data, "--port=" + strconv.Itoa(port), "--bind-address=127.0.0.1", "--socket=" + filepath.Join(dir, "s.sock"),
		"--pid-file=" + filepath.Join(dir, "pid"), "--skip-name-resolve", "--character-set-server=utf8mb4", "--max-connections=300"}
	if fast {
		args = append(args, "--innodb-flush-log-at-trx-commit=0")
	}
	s := &Server{URL: fmt.Sprintf("mysql://root@127.0.0.1:%d/", port), Port: port, dir: dir}
	s.command = func() *exec.Cmd { return account.command(dir, binary, args...) }
	s.ready = func(ctx context.Context) error {
		db, err := openMySQL(s.URL)
		if err != nil {
			return err
		}
		defer db.Close()
		return db.PingContext(ctx)
	}
	return s, s.Start()
}

// openMySQL opens a database by a URL that has no parameters.
func openMySQL(address string) (*sql.DB, error) {
	rest := strings.TrimPrefix(address, "mysql://")
	user, place, _ := strings.Cut(rest, "@")
	host, name, _ := strings.Cut(place, "/")
	return sql.Open("mysql", user+"@tcp("+host+")/"+name)
}

// createMySQL makes an empty database on a server.
func createMySQL(ctx context.Context, server, name string) (address string, remove func() error, err error) {
	db, err := openMySQL(server)
	if err != nil {
		return "", nil, err
	}
	if _, err := db.ExecContext(ctx, "CREATE DATABASE "+name); err != nil {
		return "", nil, err
	}
	return withPath(server, name), func() error {
		defer db.Close()
		_, err := db.ExecContext(context.Background(), "DROP DATABASE "+name)
		return err
	}, nil
}
