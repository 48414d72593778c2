package memstore

import (
	"context"
	"fmt"
	"time"

	"github.com/belfryhq/belfry/store"
)

// Replace changes messages from outside.
func (s *Store) Replace(ctx context.Context, now time.Time, changes []store.Change) ([]error, error) {
	for i := range changes {
		if m := &changes[i].Message; changes[i].Mode != store.Mark && (m.State == store.Leased || m.State > store.Canceled) {
			return nil, fmt.Errorf("replace %q in queue %q: a change cannot make it %v", m.ID, m.Queue, m.State)
		}
	}
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.exit()
	errs := make([]error, len(changes))
	for i := range changes {
		errs[i] = s.replace(floor(now), &changes[i])
	}
	return errs, nil
}

func (s *Store) replace(now instant, c *store.Change) error {
	m := &c.Message
	r := s.message(m.Queue, m.ID)
	switch {
	case r == nil:
		return store.ErrNotFound
	case c.Mode == store.Mark:
		return r.mark(now)
	case c.Mode == store.Swap && r.inFlight(now):
		return store.ErrInFlight
	case r.version != m.Version:
		return store.ErrConflict
	case r.wouldTakeKey(m, now) && r.queue.keyHolder(m.DedupKey, r.id, now) != nil:
		return store.ErrDuplicate
	}
	if m.State.Finished() && at(m.PurgeAt) <= now {
		s.vanish(r, m.Parent, now)
		return nil
	}
	if m.State.Finished() {
		r.queue.abandon(r)
	}
	s.change(r, now, func() { r.replace(m) })
	s.leaveFinished(r, now)
	return nil
}

// mark asks the holder of a live lease to stop.
func (r *record) mark(now instant) error {
	if !r.inFlight(now) {
		return store.ErrConflict
	}
	r.stop = true
	return nil
}

// wouldTakeKey reports whether the change makes the message hold a dedup key that it does not hold now.
func (r *record) wouldTakeKey(m *store.Message, now instant) bool {
	return wouldHold(m, now) && !(r.extra().dedupKey == m.DedupKey && r.holds(now))
}

// replace is the write of a change.
func (r *record) replace(m *store.Message) {
	r.write(m)
	if m.State.Finished() {
		r.release(m.State)
		r.visibleAt = unset
		return
	}
	r.release(store.Scheduled)
	r.visibleAt = r.dueAt
	if r.extra().waits > 0 {
		r.visibleAt = never
	}
}
