package redisstore

import (
	"context"
	"slices"
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
// there were any that this process had not registered; all counts none as registered.
func (s *Store) register(ctx context.Context, queues []string, all bool) (bool, error) {
	var fresh []string
	var calls []*call
	for _, q := range queues {
		if all || !s.known.has(q) {
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

// names returns the names of queues in order: those that begin with the prefix and sort after `after`.
func (s *Store) names(ctx context.Context, prefix, after string) ([]string, error) {
	low, high := lexRange(prefix, after)
	calls := make([]*call, shards)
	for i := range calls {
		calls[i] = &call{args: []any{"zrangebylex", s.keys.names(i), low, high}}
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
	end := prefix
	for end != "" && end[len(end)-1] == 255 { // nothing sorts after it within its place
		end = end[:len(end)-1]
	}
	if end != "" {
		high = "(" + end[:len(end)-1] + string([]byte{end[len(end)-1] + 1})
	}
	return low, high
}

// namesPage is how many queues are looked at in one round.
const namesPage = 5000

// probe runs a script over queues, as many in a call as the servers allow, and reads the answer of each call, of which it
// gives the queues too. It ends early when read says so.
func (s *Store) probe(ctx context.Context, queues []string, p probe, read func(answer any, queues []string) (more bool, err error)) error {
	size := 1
	if s.cluster == nil {
		size = 200
	}
	for page := range slices.Chunk(queues, namesPage) {
		var calls []*call
		var names [][]string
		for some := range slices.Chunk(page, size) {
			var t targets
			for _, q := range some {
				t.number(s.keys, q)
			}
			calls = append(calls, &call{script: p.script, keys: t.keys, args: p.args, write: p.write})
			names = append(names, some)
		}
		if err := s.run(ctx, calls...); err != nil {
			return err
		}
		for i, c := range calls {
			if more, err := read(c.reply, names[i]); err != nil || !more {
				return err
			}
		}
	}
	return nil
}

// probe is what is run over queues.
type probe struct {
	script *script
	args   []any
	write  bool
}
