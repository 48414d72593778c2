package sqlstore

import (
	"context"
	"time"

	"github.com/belfryhq/belfry/store"
)

// Replace changes messages from outside.
func (s *Store) Replace(ctx context.Context, now time.Time, changes []store.Change) ([]error, error) {
	r, err := s.newReplacing(changes)
	if err != nil {
		return nil, err
	}
	if err := s.write(ctx, "replace", now, r.load, r.run); err != nil {
		return nil, err
	}
	s.starts.replaced(r)
	return r.errs, nil
}

// replacing is a batch of changes.
type replacing struct {
	changes []store.Change
	records []*record
	load    Load
	errs    []error // made anew by every run
}

// newReplacing encodes the changes, which needs no database.
func (s *Store) newReplacing(changes []store.Change) (*replacing, error) {
	b := &replacing{changes: changes, records: make([]*record, len(changes)), load: Load{Rows: len(changes)}}
	for i := range changes {
		c := &changes[i]
		if c.Mode == store.Mark {
			continue
		}
		r, err := s.recordOf(&c.Message)
		if err != nil {
			return nil, err
		}
		b.records[i] = r
		b.load.Bytes += r.bytes()
	}
	return b, nil
}

// run applies the changes in their order.
func (b *replacing) run(w *work) error {
	b.errs = make([]error, len(b.changes))
	for i := range b.changes {
		refused, err := w.change(&b.changes[i], b.records[i])
		if err != nil {
			return err
		}
		b.errs[i] = refused
	}
	return nil
}

// change applies one change, or tells why it is refused.
func (w *work) change(c *store.Change, encoded *record) (refused, err error) {
	m := &c.Message
	if c.Mode == store.Mark {
		return w.mark(m.Key())
	}
	old, err := w.find(m.Queue, m.ID)
	switch {
	case err != nil:
		return nil, err
	case old == nil:
		return store.ErrNotFound, nil
	case c.Mode == store.Swap && old.inFlight(w.now):
		return store.ErrInFlight, nil
	case old.version != m.Version:
		return store.ErrConflict, nil
	}
	r := *encoded
	r.n, r.version, r.updatedAt = old.n, old.version+1, w.now
	r.createdAt, r.history = old.createdAt, old.history
	if r.wouldHold(w.now) && !(r.dedupKey == old.dedupKey && old.wouldHold(w.now)) {
		holder, err := w.holder(r.queue, r.dedupKey, r.id)
		if err != nil {
			return nil, err
		}
		if holder != nil {
			return store.ErrDuplicate, nil
		}
	}
	return nil, w.swap(old, &r)
}

// swap puts a record in the place of another one of the same message. A closed gate stays closed while it is live.
func (w *work) swap(old, r *record) error {
	if r.live() {
		r.waits, r.watched = old.waits, old.watched
		r.settle(store.Scheduled)
		old.waits = 0 // so that its gates stay
	}
	if err := w.remove(old); err != nil {
		return err
	}
	if r.live() || r.purgeAt > w.now {
		if err := w.insert(r); err != nil {
			return err
		}
	} else if err := w.vanish(r.queue, r.id, r.parent, r.version, r.n, false); err != nil {
		return err
	}
	w.versions.Saw(r.version)
	if old.watched != 0 && !r.live() {
		return w.leave(r.queue, r.id)
	}
	return nil
}

// mark asks the holder of a live lease to stop.
func (w *work) mark(key store.Key) (refused, err error) {
	marked, err := w.exec(w.q.mark, key.Queue, key.ID, w.now)
	if err != nil || marked > 0 {
		return nil, err
	}
	r, err := w.find(key.Queue, key.ID)
	if err != nil {
		return nil, err
	}
	if r == nil {
		return store.ErrNotFound, nil
	}
	return store.ErrConflict, nil
}
