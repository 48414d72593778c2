package memstore

import (
	"context"
	"time"

	"github.com/belfryhq/belfry/store"
)

// Extend moves the ends of live leases.
func (s *Store) Extend(ctx context.Context, now time.Time, tokens []store.Token, until time.Time) ([]store.Held, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.exit()
	held := make([]store.Held, len(tokens))
	for i, t := range tokens {
		held[i] = s.extend(t, floor(now), at(until))
	}
	return held, nil
}

func (s *Store) extend(t store.Token, now, until instant) store.Held {
	r := s.current(t)
	if r == nil || !r.inFlight(now) {
		return store.Lost
	}
	if until != at(time.Time{}) { // else it is only asked
		r.queue.leaveLane(r)
		r.visibleAt = until
		r.queue.lane(r.priority).add(r)
	}
	if r.stop {
		return store.Stopping
	}
	return store.Extended
}

// Forfeit ends the leases of the owner's earlier incarnations. It looks at leased messages only.
func (s *Store) Forfeit(ctx context.Context, now time.Time, owner string, epoch int64) (int, error) {
	if err := s.enter(ctx); err != nil {
		return 0, err
	}
	defer s.exit()
	var lost []*record
	for _, q := range s.queues {
		for _, r := range q.leased {
			if r.holder.owner == owner && r.holder.epoch < epoch {
				lost = append(lost, r)
			}
		}
	}
	for _, r := range lost {
		s.change(r, floor(now), func() {
			r.release(store.Scheduled)
			r.visibleAt = r.dueAt
		})
	}
	return len(lost), nil
}
