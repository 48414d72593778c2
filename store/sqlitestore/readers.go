package sqlitestore

import (
	"context"
	"errors"

	"zombiezen.com/go/sqlite"

	"github.com/belfryhq/belfry/store"
	"github.com/belfryhq/belfry/store/internal/sqlstore"
)

// readers are the connections for reads. Each read has a snapshot, so it neither waits for the writer nor delays it.
type readers struct {
	n      int
	idle   chan *conn
	closed chan struct{}
}

// openReaders opens n connections to a file that exists and is in WAL mode.
func openReaders(path string, n int, pragmas ...string) (*readers, error) {
	r := &readers{idle: make(chan *conn, n), closed: make(chan struct{})}
	for range n {
		c, err := open(path, sqlite.OpenReadOnly, pragmas...)
		if err != nil {
			return nil, errors.Join(err, r.close())
		}
		r.n++
		r.idle <- c
	}
	return r, nil
}

// read runs f on a snapshot. It ends early when the context does.
func (r *readers) read(ctx context.Context, f func(context.Context, sqlstore.Conn) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case <-r.closed:
		return store.ErrClosed
	default:
	}
	select {
	case <-r.closed:
		return store.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	case c := <-r.idle:
		defer func() { r.idle <- c }()
		err := c.snapshot(ctx, f)
		if sqlite.ErrCode(err) == sqlite.ResultInterrupt && ctx.Err() != nil {
			return ctx.Err()
		}
		return err
	}
}

// snapshot runs f in a read transaction, which the end of the context interrupts.
func (c *conn) snapshot(ctx context.Context, f func(context.Context, sqlstore.Conn) error) error {
	if _, err := c.run("BEGIN"); err != nil {
		return err
	}
	if ctx.Done() != nil {
		c.db.SetInterrupt(ctx.Done())
	}
	err := f(ctx, c)
	if ctx.Done() != nil {
		c.db.SetInterrupt(nil)
	}
	_, end := c.run("ROLLBACK")
	return errors.Join(err, end)
}

// close waits for the reads under way and closes the connections.
func (r *readers) close() error {
	close(r.closed)
	var errs []error
	for range r.n {
		c := <-r.idle
		errs = append(errs, c.close())
	}
	return errors.Join(errs...)
}
