package sqlstore

import (
	"context"
	"time"
)

// Purge removes finished messages and traces whose time has come.
func (s *Store) Purge(ctx context.Context, now time.Time, limit int) (int, error) {
	n := 0
	err := s.write(ctx, "purge", now, Load{Rows: limit}, func(w *work) error {
		over, err := w.over(limit)
		n = len(over)
		if err != nil {
			return err
		}
		return w.purge(over)
	})
	return n, err
}

// spent is a row that can be removed: a finished message, or with n zero a trace.
type spent struct {
	n, body   int64
	queue, id string
}

// over returns what can be removed, oldest first.
func (w *work) over(limit int) ([]spent, error) {
	var over []spent
	if limit <= 0 {
		return nil, nil
	}
	err := w.query(w.q.purgeable, func(row Row) error {
		var purgeAt int64
		var s spent
		err := row.Scan(&purgeAt, &s.n, &s.body, &s.queue, &s.id)
		over = append(over, s)
		return err
	}, w.now, int64(limit))
	return over, err
}

func (w *work) purge(over []spent) error {
	var finished, bodies, traces []spent
	for _, s := range over {
		switch {
		case s.n == 0:
			traces = append(traces, s)
		case s.body != 0:
			bodies = append(bodies, s)
			fallthrough
		default:
			finished = append(finished, s)
		}
	}
	if err := w.execEach(w.q.deleteFinished, len(finished), func(i int) []any { return []any{finished[i].n} }, nil); err != nil {
		return err
	}
	if err := w.execEach(w.q.deleteBody, len(bodies), func(i int) []any { return []any{bodies[i].n} }, nil); err != nil {
		return err
	}
	return w.execEach(w.q.deleteTrace, len(traces), func(i int) []any { return []any{traces[i].queue, traces[i].id} }, nil)
}
