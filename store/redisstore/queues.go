package redisstore

import (
	"context"
	"fmt"

	"github.com/belfryhq/belfry/store"
)

// Queues returns the queues with something visible within the window. It looks at the first message of every priority of
// every queue whose name is asked for.
func (s *Store) Queues(ctx context.Context, window store.Window) ([]store.QueueHint, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.exit()
	hints, err := s.queues(ctx, &window)
	if err != nil {
		return nil, fmt.Errorf("look for queues: %w", err)
	}
	return hints, nil
}

func (s *Store) queues(ctx context.Context, window *store.Window) ([]store.QueueHint, error) {
	least, greatest := any("-inf"), any("+inf")
	if !window.Min.IsZero() {
		least = millis(window.Min)
	}
	if !window.Max.IsZero() {
		greatest = floor(window.Max)
	}
	names, err := s.names(ctx, window.Prefix, window.After)
	if err != nil {
		return nil, err
	}
	var hints []store.QueueHint
	err = s.probe(ctx, names, probe{s.scripts.next, []any{least, greatest}, false}, func(answer any, queues []string) (bool, error) {
		for i, at := range asList(answer) {
			if asText(at) == "" {
				continue
			}
			ms, err := parseInstant(asText(at))
			if err != nil {
				return false, err
			}
			hints = append(hints, store.QueueHint{Queue: queues[i], At: instant(ms)})
			if len(hints) == window.Limit {
				return false, nil
			}
		}
		return true, nil
	})
	return hints, err
}
