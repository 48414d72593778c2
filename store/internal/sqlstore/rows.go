package sqlstore

import (
	"context"
	"sync"
)

// ahead is by how much the stored high-water mark is ahead of the versions in use: a minute of them, so that each process
// writes it about once a minute.
const ahead = 60_000_000

// newMark returns the high-water mark that must be stored before the versions in use are, if it must.
func (s *Store) newMark() (value int64, raise bool) {
	last := s.versions.Last()
	return last + ahead, s.q.raiseVersion != nil && last > s.marked.Load()
}

// Recover reads the high-water mark that earlier processes left: versions go on from there.
func (s *Store) Recover(ctx context.Context) error {
	return s.read(ctx, "recover", func(w *work) error {
		var value int64
		_, err := w.first(w.q.version, []any{&value})
		s.versions.Saw(value)
		return err
	})
}

// rows names rows for databases in which several processes write: each takes a block of names at a time.
type rows struct {
	mu    sync.Mutex
	next  int64
	limit int64 // the first name that is not ours any more
}

// rowBlock is how many names the query rows gives.
const rowBlock = 1000

// take returns the first of n names in a row, at most a block. Nobody waits while more gets another block: it may need a
// connection that somebody has who waits here.
func (r *rows) take(n int, more func() (int64, error)) (int64, error) {
	if first, ok := r.have(n); ok {
		return first, nil
	}
	first, err := more()
	if err != nil {
		return 0, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next, r.limit = first+int64(n), first+rowBlock // what was left of the last block is nobody's
	return first, nil
}

// have takes names from the block at hand, if it has enough.
func (r *rows) have(n int) (int64, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next+int64(n) > r.limit {
		return 0, false
	}
	first := r.next
	r.next += int64(n)
	return first, true
}
