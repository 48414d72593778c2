package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"time"
)

// system is what is measured: Belfry on a store, or a peer on the same database, each at its best documented settings.
type system interface {
	// accept stores one message durably, due at an instant.
	accept(ctx context.Context, due time.Time) error
	// fill stores many as fast as it can, due spread evenly over a span.
	fill(ctx context.Context, n int, from time.Time, span time.Duration) error
	// work delivers to an empty handler, which calls began for each, until stop is called.
	work(began func(due time.Time)) (stop func(), err error)
	// close removes everything.
	close()
}

// names are the systems that can be measured, by the database they need.
var openers = map[string]func(*bench) (system, error){
	"memory":   openMemory,
	"sqlite":   openSQLite,
	"postgres": openPostgres,
	"redis":    openRedis,
	"river":    openRiver,
	"asynq":    openAsynq,
}

// open opens an empty system.
func (b *bench) open(name string) (system, error) {
	open, ok := openers[name]
	if !ok {
		return nil, fmt.Errorf("system %q is none of %s", name, strings.Join(known(), ", "))
	}
	return open(b)
}

// stamped returns a payload of the usual size that carries the due instant.
func stamped(due time.Time) []byte {
	p := make([]byte, payloadSize)
	binary.BigEndian.PutUint64(p, uint64(due.UnixNano()))
	return p
}

// dueOf reads the instant back.
func dueOf(payload []byte) time.Time {
	return time.Unix(0, int64(binary.BigEndian.Uint64(payload)))
}
