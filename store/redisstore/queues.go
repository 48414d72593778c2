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
	var hints []store.QueueHint
	for after, more := window.After, true; more; {
		names, err := s.names(ctx, window.Prefix, after, namesPage)
		if err != nil {
			return nil, err
		}
		calls, given, err := s.probe(ctx, s.scripts.next, false, names, least, greatest)
		if err != nil {
			return nil, err
		}
		for i, c := range calls {
			for j, at := range c.list() {
				if asText(at) == "" {
					continue
				}
				ms, err := parseInstant(asText(at))
				if err != nil {
					return nil, err
				}
				hints = append(hints, store.QueueHint{Queue: given[i][j], At: instant(ms)})
				if len(hints) == window.Limit {
					return hints, nil
				}
			}
		}
		if more = len(names) == namesPage; more {
			after = names[len(names)-1]
		}
	}
	return hints, nil
}
