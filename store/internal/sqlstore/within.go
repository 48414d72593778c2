package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/belfryhq/belfry/store"
)

// Transaction is a transaction of a caller's.
type Transaction interface {
	Conn
	// Frozen reports whether the transaction goes on seeing the database as it was at its beginning, as REPEATABLE READ
	// and SERIALIZABLE ones do.
	Frozen(ctx context.Context) (bool, error)
	// LostRace reports whether an error came of another transaction that was faster, and what was undone to a savepoint
	// may be tried again in this transaction.
	LostRace(err error) bool
	// Wake sends wake-ups that are heard when the transaction commits.
	Wake(ctx context.Context, hints []store.QueueHint) error
}

// Within is a store.Writer in a caller's transaction. Each call is undone alone when it fails.
type Within struct {
	s      *Store
	tx     Transaction
	asked  bool // whether the transaction is frozen is known
	frozen bool
}

// Within returns what works in a caller's transaction.
func (s *Store) Within(tx Transaction) *Within { return &Within{s: s, tx: tx} }

// ErrOvertaken: a transaction that does not see what others have committed since it began cannot go on; run it again.
var ErrOvertaken = errors.New("another transaction was faster: run this one again")

// mostTries is how often a call that loses races is run within one transaction.
const mostTries = 10

// Get returns one message and locks it.
func (t *Within) Get(ctx context.Context, key store.Key) (store.Message, error) {
	var r *record
	err := t.run(ctx, "get", time.Time{}, func(w *work) error {
		var err error
		r, err = w.find(key.Queue, key.ID)
		return err
	})
	if err != nil {
		return store.Message{}, err
	}
	if r == nil {
		return store.Message{}, fmt.Errorf("get %q of queue %q: %w", key.ID, key.Queue, store.ErrNotFound)
	}
	return r.message()
}

// Put accepts messages.
func (t *Within) Put(ctx context.Context, now time.Time, messages []store.Message, mode store.PutMode) ([]store.PutResult, error) {
	p, err := t.s.newPut(messages, mode)
	if err != nil {
		return nil, err
	}
	if err := t.s.markAhead(ctx, now); err != nil {
		return nil, err
	}
	if err := t.run(ctx, "put", now, p.run); err != nil {
		return nil, err
	}
	t.s.starts.sawAll(p)
	return p.results()
}

// Replace changes messages from outside.
func (t *Within) Replace(ctx context.Context, now time.Time, changes []store.Change) ([]error, error) {
	r, err := t.s.newReplacing(changes)
	if err != nil {
		return nil, err
	}
	if err := t.run(ctx, "replace", now, r.run); err != nil {
		return nil, err
	}
	t.s.starts.replaced(r)
	return r.errs, nil
}

// Wake sends wake-ups with the transaction.
func (t *Within) Wake(ctx context.Context, hints []store.QueueHint) error {
	if len(hints) == 0 {
		return nil
	}
	return t.tx.Wake(ctx, hints)
}

// run runs f in the transaction and undoes it when it fails; what lost a race runs again. An error is wrapped once, with
// what was tried.
func (t *Within) run(ctx context.Context, what string, now time.Time, f func(*work) error) error {
	err := t.ask(ctx)
	for try := 1; err == nil; try++ {
		w := &work{Store: t.s, ctx: ctx, conn: t.tx, now: floor(now), time: now, writes: true, frozen: t.frozen}
		err = t.tx.Savepoint(ctx, func() error { return f(w) })
		if err == nil {
			return t.Wake(ctx, w.opened)
		}
		if try < mostTries && !t.frozen && (errors.Is(err, ErrAgain) || t.tx.LostRace(err)) {
			err = nil
		}
	}
	return fmt.Errorf("%s: %w", what, err)
}

// ask finds out what the transaction sees.
func (t *Within) ask(ctx context.Context) (err error) {
	if !t.asked {
		t.frozen, err = t.tx.Frozen(ctx)
		t.asked = err == nil
	}
	return err
}

// markAhead raises the high-water mark of versions in a transaction of its own: within a caller's the mark would stay locked
// for everybody until that ends.
func (s *Store) markAhead(ctx context.Context, now time.Time) error {
	s.versions.Next(now)
	value, raise := s.newMark()
	if !raise {
		return nil
	}
	err := s.write(ctx, "put", now, Load{Rows: 1}, func(w *work) error {
		_, err := w.exec(w.q.raiseVersion, value)
		return err
	})
	if err == nil {
		s.marked.Store(value)
	}
	return err
}
