package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
)

// databases numbers the databases that were made.
var databases atomic.Int64

// server returns the URL of a database server for measurements, from the environment.
func server(variable string) (string, error) {
	address := os.Getenv(variable)
	if address == "" {
		return "", errors.New("set " + variable + " to the URL of a server that holds nothing else, or see `make bench`")
	}
	return address, nil
}

// freshPostgres makes an empty database.
func (b *bench) freshPostgres() (address string, remove func(), err error) {
	admin, err := server("BELFRY_TEST_POSTGRES_URL")
	if err != nil {
		return "", nil, err
	}
	conn, err := pgx.Connect(b.ctx, admin)
	if err != nil {
		return "", nil, err
	}
	name := fmt.Sprintf("bench_%d_%d", os.Getpid(), databases.Add(1))
	if _, err := conn.Exec(b.ctx, "CREATE DATABASE "+name); err != nil {
		return "", nil, errors.Join(err, conn.Close(b.ctx))
	}
	u, err := url.Parse(admin)
	if err != nil {
		return "", nil, errors.Join(err, conn.Close(b.ctx))
	}
	u.Path = "/" + name
	return u.String(), func() {
		_, _ = conn.Exec(context.Background(), "DROP DATABASE "+name+" WITH (FORCE)")
		_ = conn.Close(context.Background())
	}, nil
}

// freshRedis empties the server's first database.
func (b *bench) freshRedis() (address string, remove func(), err error) {
	if address, err = server("BELFRY_TEST_REDIS_URL"); err != nil {
		return "", nil, err
	}
	o, err := redis.ParseURL(address)
	if err != nil {
		return "", nil, err
	}
	client := redis.NewClient(o)
	if err := client.FlushDB(b.ctx).Err(); err != nil {
		return "", nil, err
	}
	return address, func() {
		_ = client.FlushDB(context.Background()).Err()
		_ = client.Close()
	}, nil
}
