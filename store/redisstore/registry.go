package redisstore

import (
	"context"
	"slices"
	"strings"
	"sync"
)

// registry remembers which queues' names this process has registered. A queue's own keys say so too, which is what
// counts: a script that finds no such mark does nothing and says so.
type registry struct {
	mu    sync.Mutex
	names map[string]bool
}

// maxRegistry bounds the memory of a registry; beyond it begins anew.
const maxRegistry = 100_000

func (r *registry) has(queue string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.names[queue]
}

func (r *registry) add(queues []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.names == nil || len(r.names)+len(queues) > maxRegistry {
		r.names = make(map[string]bool)
	}
	for _, q := range queues {
		r.names[q] = true
	}
}

func (r *registry) remove(queue string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.names, queue)
}

// register puts the names of queues where Queues, List and Purge find them, before the first message is put: a name
// without messages does no harm, messages without a name would be lost to all who do not know it. It tells whether
// there were any that this process had not registered.
func (s *Store) register(ctx context.Context, queues []string) (bool, error) {
	var fresh []string
	var calls []*call
	for _, q := range queues {
		if !s.known.has(q) {
			fresh = append(fresh, q)
			calls = append(calls, &call{args: []any{"zadd", s.keys.names(shard(q)), 0, q}, write: true})
		}
	}
	if len(fresh) == 0 {
		return false, nil
	}
	if err := s.run(ctx, calls...); err != nil {
		return false, err
	}
	s.known.add(fresh)
	return true, nil
}

// names returns names of queues in order: those that begin with the prefix and sort after `after`, at most limit
// (zero: all).
func (s *Store) names(ctx context.Context, prefix, after string, limit int) ([]string, error) {
	low, high := lexRange(prefix, after)
	calls := make([]*call, shards)
	for i := range calls {
		calls[i] = &call{args: []any{"zrangebylex", s.keys.names(i), low, high}}
		if limit > 0 {
			calls[i].args = append(calls[i].args, "limit", 0, limit)
		}
	}
	if err := s.run(ctx, calls...); err != nil {
		return nil, err
	}
	var names []string
	for _, c := range calls {
		for _, name := range c.list() {
			names = append(names, asText(name))
		}
	}
	slices.Sort(names)
	if limit > 0 && len(names) > limit {
		names = names[:limit]
	}
	return names, nil
}

// lexRange returns the ends of the lexical range of names that begin with the prefix and sort after `after`.
func lexRange(prefix, after string) (low, high string) {
	low, high = "["+prefix, "+"
	if after != "" && after >= prefix {
		low = "(" + after
	}
	if prefix == "" && after == "" {
		low = "-"
	}
	if end := strings.TrimRight(prefix, "\xff"); end != "" {
		high = "(" + end[:len(end)-1] + string([]byte{end[len(end)-1] + 1})
	}
	return low, high
}

// probe runs a read-only script over all queues of a page of names, as many in a call as the servers allow. It returns
// the calls and the names that each was given.
func (s *Store) probe(ctx context.Context, what *script, write bool, queues []string, args ...any) ([]*call, [][]string, error) {
	size := 1
	if s.cluster == nil {
		size = 200
	}
	var calls []*call
	var names [][]string
	for some := range slices.Chunk(queues, size) {
		var t targets
		for _, q := range some {
			t.number(s.keys, q)
		}
		calls = append(calls, &call{script: what, keys: t.keys, args: args, write: write})
		names = append(names, some)
	}
	return calls, names, s.run(ctx, calls...)
}
