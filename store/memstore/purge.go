package memstore

import (
	"context"
	"time"
)

// purgesBefore orders what will be purged: by PurgeAt, then by address.
func purgesBefore(a, b *record) bool {
	switch {
	case a.rare.purgeAt != b.rare.purgeAt:
		return a.rare.purgeAt < b.rare.purgeAt
	case a.queue.name != b.queue.name:
		return a.queue.name < b.queue.name
	default:
		return a.id < b.id
	}
}

// Purge removes finished messages and traces whose time has come.
func (s *Store) Purge(ctx context.Context, now time.Time, limit int) (int, error) {
	if err := s.enter(ctx); err != nil {
		return 0, err
	}
	defer s.exit()
	n := 0
	for ; n < limit; n++ {
		r, ok := s.purge.Min()
		if !ok || r.rare.purgeAt > floor(now) {
			break
		}
		s.remove(r)
	}
	return n, nil
}
