package memstore

import (
	"context"
	"time"

	"github.com/belfryhq/belfry/store"
)

// Settle ends leases; the settlements of a call take effect in their order.
func (s *Store) Settle(ctx context.Context, now time.Time, settlements []store.Settlement) ([]error, error) {
	for i := range settlements {
		for j := range settlements[i].FollowUps {
			if err := checkState(&settlements[i].FollowUps[j]); err != nil {
				return nil, err
			}
		}
	}
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.exit()
	errs := make([]error, len(settlements))
	for i := range settlements {
		errs[i] = s.settle(now, &settlements[i])
	}
	return errs, nil
}

// settle applies one settlement: the message first, then the gates it leaves, then what follows it.
func (s *Store) settle(now time.Time, st *store.Settlement) error {
	r := s.current(st.Token)
	if r == nil {
		return store.ErrLeaseLost
	}
	instant := floor(now)
	if s.takesKey(r, st, instant) {
		return store.ErrDuplicate
	}
	if st.Outcome.State().Finished() && at(st.PurgeAt) <= instant {
		s.vanish(r, parentAfter(r, st.Content), instant)
	} else {
		s.change(r, instant, func() { r.settle(st, instant) })
		s.leaveFinished(r, instant)
	}
	for i := range st.FollowUps {
		s.put(now, &st.FollowUps[i], 0)
	}
	return nil
}

// current returns the message that the token holds, or nil when the token is stale.
func (s *Store) current(t store.Token) *record {
	r := s.find(t.Queue, t.ID)
	if r == nil || r.state != store.Leased || r.version != t.Version {
		return nil
	}
	return r
}

// takesKey reports whether the settlement's content would give the message a dedup key that another one holds.
func (s *Store) takesKey(r *record, st *store.Settlement, now instant) bool {
	c := st.Content
	if c == nil || c.DedupKey == r.extra().dedupKey {
		return false
	}
	holds := !st.Outcome.State().Finished() || at(c.DedupUntil) > now
	return holds && r.queue.keyHolder(c.DedupKey, r.id, now) != nil
}

// settle is the write of a settlement to its message.
func (r *record) settle(st *store.Settlement, now instant) {
	if st.Content != nil {
		claims, due := r.claims, r.dueAt
		r.write(st.Content)
		r.claims, r.dueAt = claims, due
	}
	r.release(st.Outcome.State())
	x := *r.extra()
	x.lastError, x.finishedAt, x.purgeAt = st.Error, unset, unset
	if st.Attempt != nil {
		r.attempts++
		x.history = appendAttempt(x.history, *st.Attempt)
	}
	if r.state.Finished() {
		r.visibleAt = unset
		x.finishedAt, x.purgeAt = now, at(st.PurgeAt)
	} else {
		r.dueAt = at(st.At)
		r.visibleAt = r.dueAt
	}
	if st.Outcome == store.OutcomeRelease {
		r.claims = max(0, r.claims-1)
	}
	r.setRare(x)
}

// release gives the message a state without a lease.
func (r *record) release(state store.State) {
	r.state, r.holder, r.stop = state, nil, false
}

// appendAttempt returns the history with one more attempt, the last MaxHistory of them.
func appendAttempt(history []store.Attempt, a store.Attempt) []store.Attempt {
	if len(history) >= store.MaxHistory {
		history = append(history[:0:0], history[len(history)-store.MaxHistory+1:]...)
	}
	return append(history, cloneAttempt(a))
}

// parentAfter returns the parent that the message has with the content, which may be nil.
func parentAfter(r *record, content *store.Message) string {
	if content != nil {
		return content.Parent
	}
	return r.extra().parent
}

// vanish is the end of a message that is not kept: it goes away with the write that finishes it. The id of a follow-up
// stays taken for TraceTTL.
func (s *Store) vanish(r *record, parent string, now instant) {
	q := r.queue
	q.abandon(r)
	s.remove(r)
	if parent != "" {
		t := &record{queue: s.open(q.name), id: r.id, version: r.version}
		t.own().purgeAt = now.add(store.TraceTTL)
		s.insert(t)
	}
	s.leave(q, r.id, now)
}
