package sqlstore

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/belfryhq/belfry/store"
)

// Store is the part of a store.Store that all SQL databases share: all but Ping, Inspect and Close. A database's store
// embeds it.
type Store struct {
	db       DB
	batcher  Batcher // nil: everything goes the general way
	q        *queries
	inline   int
	take     Taker
	versions Versions
	rows     rows
	starts   starts
	marked   atomic.Int64            // the high-water mark of versions that is stored for sure
	wake     func([]store.QueueHint) // nil: nobody listens
}

// WakeBy sets what is told of the queues in which a gate may have opened. It is called before the store is used.
func (s *Store) WakeBy(wake func([]store.QueueHint)) { s.wake = wake }

// New returns a store on the database. It fails when the dialect lacks a query.
func New(db DB, d Dialect) (*Store, error) {
	q, err := d.load()
	if err != nil {
		return nil, err
	}
	s := &Store{db: db, q: q, inline: d.Inline, take: d.Take}
	if q.claimSet != nil {
		s.batcher = db.(Batcher)
	}
	return s, nil
}

// Versions returns what gives versions to messages, so that a database's store can keep it from going back.
func (s *Store) Versions() *Versions { return &s.versions }

// work is what one method does in a transaction: the store, and the connection and the now that it works with.
type work struct {
	*Store
	ctx  context.Context
	conn Conn
	now  int64 // floored
	time time.Time

	writes bool // in a transaction that writes
	frozen bool // in one that does not see what others commit meanwhile

	opened []store.QueueHint // queues in which a gate may have opened
}

// write runs f in a transaction. An error is wrapped once, with what was tried.
func (s *Store) write(ctx context.Context, what string, now time.Time, load Load, f func(*work) error) error {
	var opened []store.QueueHint
	err := s.db.Write(ctx, load, func(ctx context.Context, c Conn) error {
		w := &work{Store: s, ctx: ctx, conn: c, now: floor(now), time: now, writes: true}
		err := f(w)
		opened = w.opened
		return err
	})
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	for _, h := range opened {
		s.starts.lost(h.Queue)
	}
	if len(opened) > 0 && s.wake != nil {
		s.wake(opened)
	}
	return nil
}

// read runs f on a snapshot.
func (s *Store) read(ctx context.Context, what string, f func(*work) error) error {
	err := s.db.Read(ctx, func(ctx context.Context, c Conn) error {
		return f(&work{Store: s, ctx: ctx, conn: c})
	})
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// The work's short forms of running queries.

func (w *work) exec(q *Query, args ...any) (int64, error) { return exec(w.ctx, w.conn, q, args...) }

func (w *work) execEach(q *Query, n int, args func(i int) []any, touched func(i int, rows int64)) error {
	return execEach(w.ctx, w.conn, q, n, args, touched)
}

func (w *work) query(q *Query, row func(Row) error, args ...any) error {
	return query(w.ctx, w.conn, q, row, args...)
}

func (w *work) queryEach(q *Query, n int, args func(i int) []any, row func(i int, r Row) error) error {
	return queryEach(w.ctx, w.conn, q, n, args, row)
}

func (w *work) first(q *Query, dest []any, args ...any) (bool, error) {
	return first(w.ctx, w.conn, q, dest, args...)
}

// number gives new records their first versions and names of their rows.
func (w *work) number(records []*record) error {
	err := w.numberBy(records, func() (first int64, err error) {
		_, err = w.first(w.q.rows, []any{&first})
		return first, err
	})
	if value, raise := w.newMark(); raise && err == nil {
		_, err = w.exec(w.q.raiseVersion, value)
	}
	return err
}

// numberBy does that with names from more, which gives the first of a block of names.
func (w *work) numberBy(records []*record, more func() (int64, error)) error {
	for _, r := range records {
		r.version = w.nextVersion()
		r.n = r.version
	}
	if w.q.rows == nil {
		return nil
	}
	for part := range slices.Chunk(records, rowBlock) {
		first, err := w.rows.take(len(part), more)
		if err != nil {
			return err
		}
		for i, r := range part {
			r.n = first + int64(i)
		}
	}
	return nil
}

// nextVersion returns the first version of a message that is new under its id.
func (w *work) nextVersion() int64 { return w.versions.Next(w.time) }

// checkState refuses a state in which nobody but a claim can put a message.
func checkState(m *store.Message) error {
	if m.State == store.Leased || m.State > store.Canceled {
		return fmt.Errorf("message %q of queue %q: the state %v cannot be given", m.ID, m.Queue, m.State)
	}
	return nil
}

// recordOf returns the record of a message that is to be stored.
func (s *Store) recordOf(m *store.Message) (*record, error) {
	if err := checkState(m); err != nil {
		return nil, err
	}
	r := &record{}
	if err := r.encode(m, s.inline); err != nil {
		return nil, err
	}
	r.settle(max(m.State, store.Scheduled))
	r.createdAt = ceil(m.CreatedAt)
	r.history = encodeHistory(m.History)
	return r, nil
}

// bytes is about how much the record takes.
func (r *record) bytes() int {
	return 200 + len(r.payload) + len(r.apart.payload) + len(r.metadata) + len(r.apart.metadata) + len(r.details) + len(r.history)
}
