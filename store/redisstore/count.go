package redisstore

import (
	"context"
	"fmt"
	"slices"

	"github.com/belfryhq/belfry/store"
)

// Count returns how many messages match. By queue and state it reads sizes of indexes alone; other conditions look at
// each message of the narrowest index, a stretch at a time.
func (s *Store) Count(ctx context.Context, query store.Query) (int64, error) {
	if err := s.enter(ctx); err != nil {
		return 0, err
	}
	defer s.exit()
	n, err := s.count(ctx, &query)
	if err != nil {
		return 0, fmt.Errorf("count: %w", err)
	}
	return n, nil
}

func (s *Store) count(ctx context.Context, query *store.Query) (int64, error) {
	f, o := newFilter(query, true), sorter{by: store.ByCreated}
	if f.states == "" {
		return 0, nil
	}
	if f.fireMin != unset || f.fireMax != unset {
		o.by = store.ByFireAt
	}
	if f.byStateAlone() {
		return s.countStates(ctx, query, &f)
	}
	names, err := s.selected(ctx, query, &f)
	if err != nil {
		return 0, err
	}
	var total int64
	for some := range slices.Chunk(names, namesPage) {
		streams := make([]*stream, len(some))
		for i, name := range some {
			streams[i] = o.newStream(name, nil)
		}
		n, err := s.countAll(ctx, streams, o, &f)
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

// countAll counts what is in streams, to their ends.
func (s *Store) countAll(ctx context.Context, streams []*stream, o sorter, f *filter) (int64, error) {
	var total int64
	for len(streams) > 0 {
		calls := make([]*call, len(streams))
		for i, st := range streams {
			calls[i] = st.call(s, o, f, true, 0)
		}
		if err := s.run(ctx, calls...); err != nil {
			return 0, err
		}
		for i, st := range streams {
			n, err := st.read(calls[i], o)
			if err != nil {
				return 0, err
			}
			total += n
		}
		streams = slices.DeleteFunc(streams, func(st *stream) bool { return st.done })
	}
	return total, nil
}

// countStates counts by queue and state.
func (s *Store) countStates(ctx context.Context, query *store.Query, f *filter) (int64, error) {
	names := []string{query.Queue}
	if query.Queue == "" {
		var err error
		if names, err = s.names(ctx, query.Prefix, ""); err != nil {
			return 0, err
		}
	}
	var total int64
	err := s.sizes(ctx, names, f, func(_ string, n int64) { total += n })
	return total, err
}
