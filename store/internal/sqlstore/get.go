package sqlstore

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/belfryhq/belfry/store"
)

// Get returns one message with payload and history.
func (s *Store) Get(ctx context.Context, key store.Key) (store.Message, error) {
	var r *record
	err := s.read(ctx, "get", func(w *work) error {
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

// Holder returns who holds a dedup key.
func (s *Store) Holder(ctx context.Context, queue, dedupKey string, now time.Time) (store.Key, error) {
	var r *record
	err := s.read(ctx, "find the holder of a dedup key", func(w *work) error {
		var err error
		w.now = floor(now)
		r, err = w.holder(queue, dedupKey, "")
		return err
	})
	if err != nil {
		return store.Key{}, err
	}
	if r == nil {
		return store.Key{}, fmt.Errorf("holder of a dedup key in queue %q: %w", queue, store.ErrNotFound)
	}
	return store.Key{Queue: r.queue, ID: r.id}, nil
}

// Queues returns the queues with something visible within the window, by two probes for each queue and priority.
func (s *Store) Queues(ctx context.Context, window store.Window) ([]store.QueueHint, error) {
	var hints []store.QueueHint
	err := s.read(ctx, "queues", func(w *work) error {
		hints = nil
		return w.query(w.q.window, func(row Row) error {
			var queue string
			var at int64
			if err := row.Scan(&queue, &at); err != nil {
				return err
			}
			last := len(hints) - 1
			switch {
			case !window.Max.IsZero() && at > floor(window.Max):
			case last >= 0 && hints[last].Queue == queue:
				hints[last].At = store.Earlier(hints[last].At, instant(at))
			case window.Limit > 0 && len(hints) == window.Limit:
				return errStop
			default:
				hints = append(hints, store.QueueHint{Queue: queue, At: instant(at)})
			}
			return nil
		}, append(from(window.Prefix, window.After), window.Prefix, ceilOr(window.Min, math.MinInt64))...)
	})
	return hints, err
}

// from returns the place (queue, priority) after which the queues with the prefix that sort after `after` stand.
func from(prefix, after string) []any {
	if after != "" && after >= prefix {
		return []any{after, int64(math.MaxInt64)}
	}
	return []any{prefix, int64(math.MinInt64)}
}

// queues returns the names of queues that hold something, live or finished: the one that is asked for, or those with the
// prefix.
func (w *work) queues(list *Query, query *store.Query) ([]string, error) {
	if query.Queue != "" {
		return []string{query.Queue}, nil
	}
	var names []string
	err := w.query(list, func(row Row) error {
		var name string
		err := row.Scan(&name)
		names = append(names, strings.Clone(name))
		return err
	}, append(from(query.Prefix, ""), query.Prefix)...)
	return names, err
}
