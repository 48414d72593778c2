package redisstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"
)

// Purge removes finished messages and traces whose time has come. It asks every queue for its oldest, and removes the
// oldest of all. The body of a finished message expires by itself even if nobody calls Purge.
func (s *Store) Purge(ctx context.Context, now time.Time, limit int) (int, error) {
	if err := s.enter(ctx); err != nil {
		return 0, err
	}
	defer s.exit()
	n, err := s.purge(ctx, floor(now), limit)
	if err != nil {
		return n, fmt.Errorf("purge: %w", err)
	}
	return n, nil
}

func (s *Store) purge(ctx context.Context, now int64, limit int) (int, error) {
	if limit <= 0 {
		return 0, nil
	}
	first, err := s.overdue(ctx, now, limit)
	if err != nil {
		return 0, err
	}
	type purging struct {
		call
		targets
		n int
	}
	var calls []*purging
	var plain []*call
	open := make(map[string]*purging)
	for _, p := range first {
		group := s.group(p.queue)
		c := open[group]
		if c == nil || c.n == maxMessages {
			c = &purging{call: call{script: s.scripts.purge, args: []any{now}, write: true}}
			open[group], calls, plain = c, append(calls, c), append(plain, &c.call)
		}
		c.n++
		c.args = append(c.args, c.number(s.keys, p.queue), p.id)
		c.call.keys = c.targets.keys
	}
	err = s.run(ctx, plain...)
	total := 0
	for _, c := range calls {
		total += int(asInt(c.reply))
	}
	return total, err
}

// overdue returns the first of all queues that are over, at most limit.
func (s *Store) overdue(ctx context.Context, now int64, limit int) ([]place, error) {
	names, err := s.names(ctx, "", "")
	if err != nil {
		return nil, err
	}
	var first []place
	cut := func() {
		slices.SortFunc(first, func(a, b place) int {
			return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.queue, b.queue), cmp.Compare(a.id, b.id))
		})
		first = first[:min(limit, len(first))]
	}
	err = s.probe(ctx, names, probe{s.scripts.overdue, []any{now, limit}, false}, func(answer any, queues []string) (bool, error) {
		list := asList(answer)
		for i := 0; i+2 < len(list); i += 3 {
			at, err := parseInstant(asText(list[i+2]))
			if err != nil {
				return false, err
			}
			first = append(first, place{at, asText(list[i+1]), queues[asInt(list[i])-1]})
		}
		if len(first) > 2*limit {
			cut()
		}
		return true, nil
	})
	cut()
	return first, err
}
