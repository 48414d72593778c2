package memstore

import (
	"context"
	"fmt"
	"time"

	"github.com/belfryhq/belfry/store"
)

// Put accepts messages.
func (s *Store) Put(ctx context.Context, now time.Time, messages []store.Message, mode store.PutMode) ([]store.PutResult, error) {
	for i := range messages {
		if err := checkState(&messages[i]); err != nil {
			return nil, err
		}
	}
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.exit()
	if mode&store.Atomic != 0 {
		if results := s.foresee(floor(now), messages, mode); results != nil {
			return results, nil
		}
	}
	results := make([]store.PutResult, len(messages))
	for i := range messages {
		results[i] = s.put(now, &messages[i], mode)
	}
	return results, nil
}

// checkState refuses what no store can hold.
func checkState(m *store.Message) error {
	if m.State == store.Leased || m.State > store.Canceled {
		return fmt.Errorf("put %q in queue %q: state %v cannot be put", m.ID, m.Queue, m.State)
	}
	return nil
}

// put stores one message or says why not.
func (s *Store) put(now time.Time, m *store.Message, mode store.PutMode) store.PutResult {
	instant := floor(now)
	old := s.find(m.Queue, m.ID)
	if err := refusal(old, instant, mode); err != nil {
		return refused(err, old)
	}
	if q := s.queues[m.Queue]; q != nil && wouldHold(m, instant) {
		if holder := q.keyHolder(m.DedupKey, m.ID, instant); holder != nil {
			return refused(store.ErrDuplicate, holder)
		}
	}
	var version int64
	if old != nil {
		version = old.version + 1
		old.queue.abandon(old)
		s.remove(old)
	} else {
		version = s.firstVersion(now)
	}
	r := s.accept(instant, m, version)
	if old != nil {
		s.leaveFinished(r, instant)
	}
	return store.PutResult{Version: version}
}

// refusal says whether what is stored under the id keeps a message from being put.
func refusal(old *record, now instant, mode store.PutMode) error {
	switch {
	case old == nil:
		return nil
	case mode&store.Overwrite == 0:
		return store.ErrExists
	case old.inFlight(now):
		return store.ErrInFlight
	default:
		return nil
	}
}

// refused is the result of a message that the record keeps out.
func refused(err error, by *record) store.PutResult {
	var existing store.Message
	if by.state == trace {
		existing = by.traceMessage()
	} else {
		existing = by.message()
	}
	return store.PutResult{Err: err, Existing: &existing}
}

// wouldHold reports whether the message, once stored, would keep its dedup key from others.
func wouldHold(m *store.Message, now instant) bool {
	return m.DedupKey != "" && (!m.State.Finished() || at(m.DedupUntil) > now)
}

// accept stores a message that nothing keeps out.
func (s *Store) accept(now instant, m *store.Message, version int64) *record {
	q := s.open(m.Queue)
	r := &record{queue: q, id: m.ID, state: m.State, version: version, updatedAt: now, createdAt: at(m.CreatedAt)}
	if r.state == 0 {
		r.state = store.Scheduled
	}
	if r.createdAt == unset {
		r.createdAt = now
	}
	r.write(m)
	if len(m.History) > 0 {
		r.own().history = cloneHistory(m.History)
	}
	r.visibleAt = unset
	if r.state.Live() {
		r.visibleAt = r.dueAt
		if ids := q.members(m.Gate, m.ID); len(ids) > 0 {
			q.close(r, ids)
			r.visibleAt = never
		}
	} else {
		r.own() // a finished message is always in the purge index, which reads the rare part
	}
	s.insert(r)
	return r
}
