package sqlstore

import (
	"context"
	"time"

	"github.com/belfryhq/belfry/store"
)

// Extend moves the ends of live leases.
func (s *Store) Extend(ctx context.Context, now time.Time, tokens []store.Token, until time.Time) ([]store.Held, error) {
	held := make([]store.Held, len(tokens))
	if until.IsZero() { // it is only asked
		err := s.read(ctx, "extend", func(w *work) error {
			w.now = floor(now)
			_, err := w.held(tokens, held)
			return err
		})
		return held, err
	}
	defer s.starts.extended(tokens, until)
	if s.batcher != nil && len(tokens) > 0 {
		return s.extendSet(ctx, now, tokens, until)
	}
	err := s.write(ctx, "extend", now, Load{Rows: len(tokens)}, func(w *work) error {
		clear(held)
		return w.extend(tokens, ceil(until), held)
	})
	return held, err
}

func (w *work) extend(tokens []store.Token, until int64, held []store.Held) error {
	rows, err := w.held(tokens, held)
	if err != nil {
		return err
	}
	return w.execEach(w.q.extend, len(rows), func(i int) []any { return []any{&rows[i], &until} }, nil)
}

// held tells of each token whether it holds a live lease, and returns the rows of those that do.
func (w *work) held(tokens []store.Token, held []store.Held) (rows []int64, err error) {
	args := func(i int) []any {
		t := &tokens[i]
		return []any{&t.Queue, &t.ID, &t.Version, &w.now}
	}
	err = w.queryEach(w.q.findHeld, len(tokens), args, func(i int, row Row) error {
		var n, stop int64
		if err := row.Scan(&n, &stop); err != nil {
			return err
		}
		rows = append(rows, n)
		held[i] = store.Extended
		if stop != 0 {
			held[i] = store.Stopping
		}
		return nil
	})
	return rows, err
}

// Forfeit ends the leases of the owner's earlier incarnations. It looks at leased messages only.
func (s *Store) Forfeit(ctx context.Context, now time.Time, owner string, epoch int64) (int, error) {
	var n int64
	err := s.write(ctx, "forfeit", now, Load{}, func(w *work) error {
		var err error
		n, err = w.exec(w.q.forfeit, owner, epoch, w.now)
		return err
	})
	s.starts.lostAll()
	return int(n), err
}
