package redisstore

import (
	"context"
	"fmt"
	"time"

	"github.com/belfryhq/belfry/store"
)

// Replace changes messages from outside: one script call for each group of queues and a few hundred changes.
func (s *Store) Replace(ctx context.Context, now time.Time, changes []store.Change) ([]error, error) {
	for i := range changes {
		m := &changes[i].Message
		if changes[i].Mode != store.Mark && (m.State == store.Leased || m.State > store.Canceled) {
			return nil, fmt.Errorf("replace %q in queue %q: a change cannot make it %v", m.ID, m.Queue, m.State)
		}
		if err := checkNames(m); err != nil {
			return nil, err
		}
	}
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.exit()
	errs, err := s.replace(ctx, now, changes)
	if err != nil {
		return nil, fmt.Errorf("replace %d messages: %w", len(changes), err)
	}
	return errs, nil
}

func (s *Store) replace(ctx context.Context, now time.Time, changes []store.Change) ([]error, error) {
	n := floor(now)
	b := batch{s: s, script: s.scripts.replace, head: []any{n}, most: maxSettlements, opens: true}
	for i := range changes {
		m := &changes[i].Message
		var head, body []byte
		if changes[i].Mode != store.Mark {
			head = appendHead(nil, m, unset, n, 0)
			body = appendBody(make([]byte, 0, size(m)), m)
		}
		b.add(i, m.Queue, size(m), m.ID, int(changes[i].Mode), m.Version, head, body)
	}
	errs := make([]error, len(changes))
	err := b.run(ctx, func(i int, answer any) error {
		errs[i] = codeError(asInt(answer))
		return nil
	})
	if err != nil {
		return nil, err
	}
	s.tell(ctx, b.gates)
	return errs, nil
}
