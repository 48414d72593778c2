package sqlitestore

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/belfryhq/belfry/store"
	"github.com/belfryhq/belfry/store/internal/sqlstore"
)

// A transaction takes at most so much of what has queued up, so that none lasts long; one operation may be larger.
const (
	maxRows  = 2000
	maxBytes = 8 << 20
)

// writer is the one goroutine that writes. Operations of any kind queue up and are committed together.
type writer struct {
	conn      *conn
	versions  *sqlstore.Versions
	highWater int64       // the largest version that the file allows for
	committed func(*conn) // called after every commit, between transactions

	mu      sync.Mutex
	pending []*operation
	closed  bool
	wake    chan struct{} // holds one signal that pending or closed changed
	done    chan struct{} // closed when the goroutine has ended
}

// operation is a write that waits or is under way.
type operation struct {
	ctx   context.Context
	load  sqlstore.Load
	f     func(context.Context, sqlstore.Conn) error
	taken atomic.Int32 // one of the states below
	done  chan error
}

// The states of an operation: who decides what becomes of it.
const (
	queued    int32 = iota
	underWay        // the writer has it and will answer
	abandoned       // its caller has left the queue
)

func newWriter(c *conn) *writer {
	return &writer{conn: c, wake: make(chan struct{}, 1), done: make(chan struct{})}
}

// write queues f and waits until it is committed, or undone. A caller whose context ends before the writer has taken the
// operation leaves the queue with nothing done; after that it waits for the outcome.
func (w *writer) write(ctx context.Context, load sqlstore.Load, f func(context.Context, sqlstore.Conn) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	op := &operation{ctx: ctx, load: load, f: f, done: make(chan error, 1)}
	if !w.enqueue(op) {
		return store.ErrClosed
	}
	select {
	case err := <-op.done:
		return err
	case <-ctx.Done():
		if op.taken.CompareAndSwap(queued, abandoned) {
			return ctx.Err()
		}
		return <-op.done
	}
}

func (w *writer) enqueue(op *operation) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return false
	}
	w.pending = append(w.pending, op)
	w.signal()
	return true
}

func (w *writer) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// close lets nothing more in and waits until what has queued up is done.
func (w *writer) close() {
	w.mu.Lock()
	w.closed = true
	w.signal()
	w.mu.Unlock()
	<-w.done
}

// run is the goroutine.
func (w *writer) run() {
	defer close(w.done)
	for {
		batch, closed := w.take()
		switch {
		case len(batch) > 0:
			w.commitAll(batch)
			w.committed(w.conn)
		case closed:
			return
		default:
			<-w.wake
		}
	}
}

// take returns the operations of the next transaction, and whether no more will come after the last one.
func (w *writer) take() (batch []*operation, closed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var load sqlstore.Load
	n := 0
	for _, op := range w.pending {
		load.Rows += op.load.Rows
		load.Bytes += op.load.Bytes
		if len(batch) > 0 && (load.Rows > maxRows || load.Bytes > maxBytes) {
			break
		}
		n++
		if op.taken.CompareAndSwap(queued, underWay) {
			batch = append(batch, op)
		}
	}
	clear(w.pending[:n])
	w.pending = w.pending[n:]
	if len(w.pending) == 0 {
		w.pending = nil
	}
	return batch, w.closed && len(w.pending) == 0
}

// commitAll runs operations in one transaction. Should one fail, nothing of it is committed and each runs again in a
// transaction of its own, so that the others do not suffer: failures are rare and cost time, successes nothing.
func (w *writer) commitAll(batch []*operation) {
	err := w.transact(batch)
	var failed *operationError
	if errors.As(err, &failed) && len(batch) > 1 {
		for _, op := range batch {
			w.commitAll([]*operation{op})
		}
		return
	}
	if failed != nil {
		err = failed.error
	}
	for _, op := range batch {
		op.done <- err
	}
}

// operationError is the failure of one operation, as opposed to that of the transaction.
type operationError struct{ error }

// transact runs the operations between BEGIN and COMMIT. When it returns an error nothing was changed.
func (w *writer) transact(batch []*operation) (err error) {
	if _, err := w.conn.run("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = w.rollback(err)
		}
	}()
	for _, op := range batch {
		if err := op.f(op.ctx, w.conn); err != nil {
			return &operationError{err}
		}
	}
	highWater, err := w.raiseHighWater()
	if err != nil {
		return err
	}
	if _, err := w.conn.run("COMMIT"); err != nil {
		return err
	}
	w.highWater = highWater
	return nil
}

// rollback undoes the transaction unless SQLite has done so itself, as it does when the disk is full.
func (w *writer) rollback(cause error) error {
	if w.conn.db.AutocommitEnabled() {
		return cause
	}
	if _, err := w.conn.run("ROLLBACK"); err != nil {
		return errors.Join(cause, err)
	}
	return cause
}

// ahead is by how much the stored high-water mark is ahead of the versions in use: a minute of them, so that it is
// written about once a minute.
const ahead = 60_000_000

// raiseHighWater stores a version that none is above, so that a file that is opened under a clock that went back gives
// none twice.
func (w *writer) raiseHighWater() (int64, error) {
	last := w.versions.Last()
	if last <= w.highWater {
		return w.highWater, nil
	}
	return last + ahead, sqlitex.ExecuteTransient(w.conn.db, "UPDATE counters SET value = ? WHERE name = 'version'",
		&sqlitex.ExecOptions{Args: []any{last + ahead}})
}
