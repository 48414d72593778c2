package sqlstore

import (
	"slices"

	"github.com/belfryhq/belfry/store"
)

// members returns the ids of the live messages that a gate names, each once, without the gated one itself.
func (w *work) members(g *store.Gate, queue, gated string) ([]string, error) {
	if g == nil {
		return nil, nil
	}
	var ids []string
	add := func(r Row) error {
		var id string
		if err := r.Scan(&id); err != nil {
			return err
		}
		if id != gated {
			ids = append(ids, id)
		}
		return nil
	}
	args := func(i int) []any { return []any{queue, g.IDs[i]} }
	if err := w.queryEach(w.q.isLive, len(g.IDs), args, func(_ int, r Row) error { return add(r) }); err != nil {
		return nil, err
	}
	if g.Group != "" {
		if err := w.query(w.q.groupMembers, add, queue, g.Group); err != nil {
			return nil, err
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// close makes the record, which is being stored, wait for the ids.
func (w *work) close(r *record, ids []string) error {
	err := w.execEach(w.q.insertGate, len(ids), func(i int) []any { return []any{r.queue, ids[i], r.id} }, nil)
	if err != nil {
		return err
	}
	return w.execEach(w.q.watch, len(ids), func(i int) []any { return []any{r.queue, ids[i]} }, nil)
}

// leave takes a message that is live no more out of every gate that waits for it; the last one opens the gate.
func (w *work) leave(queue, id string) error {
	var waiters []string
	err := w.query(w.q.waiters, func(r Row) error {
		var waiter string
		err := r.Scan(&waiter)
		waiters = append(waiters, waiter)
		return err
	}, queue, id)
	if err != nil || len(waiters) == 0 {
		return err
	}
	if _, err := w.exec(w.q.deleteGatesOfMember, queue, id); err != nil {
		return err
	}
	w.opened = append(w.opened, store.QueueHint{Queue: queue, At: w.time})
	return w.execEach(w.q.releaseWaiter, len(waiters), func(i int) []any { return []any{queue, waiters[i], w.now} }, nil)
}
