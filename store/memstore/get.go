package memstore

import (
	"context"
	"strings"
	"time"

	"github.com/belfryhq/belfry/store"
)

// Get returns one message with payload and history.
func (s *Store) Get(ctx context.Context, key store.Key) (store.Message, error) {
	if err := s.enter(ctx); err != nil {
		return store.Message{}, err
	}
	defer s.mu.Unlock()
	r := s.message(key.Queue, key.ID)
	if r == nil {
		return store.Message{}, store.ErrNotFound
	}
	m := r.full()
	m.History = cloneHistory(r.extra().history)
	return m, nil
}

// Holder returns who holds a dedup key.
func (s *Store) Holder(ctx context.Context, queue, dedupKey string, now time.Time) (store.Key, error) {
	if err := s.enter(ctx); err != nil {
		return store.Key{}, err
	}
	defer s.mu.Unlock()
	if q := s.queues[queue]; q != nil {
		if r := q.keyHolder(dedupKey, "", floor(now)); r != nil {
			return store.Key{Queue: queue, ID: r.id}, nil
		}
	}
	return store.Key{}, store.ErrNotFound
}

// Queues returns the queues with something visible within the window. Its cost is in proportion to the queues and their
// priorities, not to the messages.
func (s *Store) Queues(ctx context.Context, window store.Window) ([]store.QueueHint, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	earliest, latest := at(window.Min), never
	if !window.Max.IsZero() {
		latest = floor(window.Max)
	}
	var hints []store.QueueHint
	s.names.Ascend(&queue{name: max(window.Prefix, window.After)}, func(q *queue) bool {
		if !strings.HasPrefix(q.name, window.Prefix) || window.Limit > 0 && len(hints) == window.Limit {
			return false
		}
		if next, ok := q.nextFrom(earliest); ok && next <= latest && (window.After == "" || q.name > window.After) {
			hints = append(hints, store.QueueHint{Queue: q.name, At: next.time()})
		}
		return true
	})
	return hints, nil
}
