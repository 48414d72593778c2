package sqlstore

import (
	"context"
	"time"

	"github.com/belfryhq/belfry/store"
)

// Settle ends leases; the settlements of a call take effect in their order.
func (s *Store) Settle(ctx context.Context, now time.Time, settlements []store.Settlement) ([]error, error) {
	b := &settling{items: make([]settlement, len(settlements))}
	for i := range settlements {
		if err := s.encodeSettlement(&settlements[i], &b.items[i]); err != nil {
			return nil, err
		}
		b.load.Rows += 1 + len(settlements[i].FollowUps)
		b.load.Bytes += 200 + len(b.items[i].line)
		if f := b.items[i].followUps; f != nil {
			b.load.Bytes += f.load.Bytes
		}
	}
	run, merge := b, func() {}
	if s.batcher != nil && b.quick() {
		left, err := s.settleSet(ctx, now, b)
		if err != nil {
			return nil, err
		}
		b.errs = make([]error, len(b.items))
		if len(left) == 0 {
			s.starts.settled(b)
			return b.errs, nil
		}
		run, merge = b.part(left)
	}
	if err := s.write(ctx, "settle", now, run.load, run.run); err != nil {
		return nil, err
	}
	merge()
	s.starts.settled(b)
	return b.errs, nil
}

// settling is a batch of settlements.
type settling struct {
	items []settlement
	load  Load
	errs  []error // made anew by every run
}

// settlement is one settlement, encoded.
type settlement struct {
	*store.Settlement
	at, purgeAt int64
	line        string  // of the history; empty: none
	content     *record // nil: none
	followUps   *put    // nil: none

	lease // as it was found
}

// lease is what is read of a message before it is settled.
type lease struct {
	n       int64 // zero: the token is stale
	parent  string
	watched int64
	body    int64
	history string
}

func (s *Store) encodeSettlement(from *store.Settlement, to *settlement) error {
	*to = settlement{Settlement: from, at: ceil(from.At), purgeAt: ceil(from.PurgeAt), line: encodeAttempt(from.Attempt)}
	if from.Content != nil {
		to.content = &record{}
		if err := to.content.encode(from.Content, s.inline); err != nil {
			return err
		}
	}
	if len(from.FollowUps) == 0 {
		return nil
	}
	var err error
	to.followUps, err = s.newPut(from.FollowUps, 0)
	return err
}

// simple reports whether the settlement touches nothing but its message, so that it can be done together with others.
func (t *settlement) simple() bool { return t.content == nil && t.followUps == nil }

// run applies the batch: runs of simple settlements together, the others alone, in their order.
func (b *settling) run(w *work) error {
	b.errs = make([]error, len(b.items))
	for from := 0; from < len(b.items); {
		to := from + 1
		for b.items[from].simple() && to < len(b.items) && b.items[to].simple() {
			to++
		}
		if err := b.apply(w, from, to); err != nil {
			return err
		}
		from = to
	}
	return nil
}

// apply settles the items of a range: simple ones, or one that is not.
func (b *settling) apply(w *work, from, to int) error {
	items := b.items[from:to]
	if err := w.findLeases(items); err != nil {
		return err
	}
	current := make([]*settlement, 0, len(items))
	for i := range items {
		if items[i].n == 0 {
			b.errs[from+i] = store.ErrLeaseLost
		} else {
			items[i].history = appendLine(items[i].history, items[i].line)
			current = append(current, &items[i])
		}
	}
	switch {
	case len(current) == 0:
		return nil
	case current[0].content == nil:
		if err := w.end(current); err != nil {
			return err
		}
	default:
		refused, err := w.endWith(current[0])
		if err != nil || refused != nil {
			b.errs[from] = refused
			return err
		}
	}
	if f := current[0].followUps; f != nil {
		return f.run(w)
	}
	return nil
}

// findLeases finds the messages that the tokens hold. Of two tokens for one message the second is stale.
func (w *work) findLeases(items []settlement) error {
	seen := make(map[int64]bool, len(items))
	for i := range items {
		items[i].lease = lease{}
	}
	args := func(i int) []any {
		t := &items[i].Token
		return []any{&t.Queue, &t.ID, &t.Version}
	}
	return w.queryEach(w.q.findLease, len(items), args, func(i int, row Row) error {
		var l lease
		if err := row.Scan(&l.n, &l.parent, &l.watched, &l.body, &l.history); err != nil {
			return err
		}
		if !seen[l.n] {
			seen[l.n] = true
			items[i].lease = l
		}
		return nil
	})
}

// endWith applies the outcome of a settlement with content. It returns ErrDuplicate as refused, with nothing changed,
// when another message holds the content's dedup key.
func (w *work) endWith(t *settlement) (refused, err error) {
	old, err := w.find(t.Token.Queue, t.Token.ID)
	if err != nil {
		return nil, err
	}
	r := t.replacement(old, w.now)
	if r.dedupKey != old.dedupKey && r.wouldHold(w.now) {
		holder, err := w.holder(r.queue, r.dedupKey, r.id)
		if err != nil {
			return nil, err
		}
		if holder != nil {
			return store.ErrDuplicate, nil
		}
	}
	return nil, w.swap(old, r)
}

// replacement returns what the settlement makes of the message: its content with the outcome.
func (t *settlement) replacement(old *record, now int64) *record {
	r := *t.content
	r.queue, r.id = old.queue, old.id
	r.n, r.version, r.createdAt, r.updatedAt = old.n, old.version+1, old.createdAt, now
	r.lastError, r.history = t.Error, appendLine(old.history, t.line)
	r.attempts += bit(t.Attempt != nil)
	r.claims = max(0, old.claims-bit(t.Outcome == store.OutcomeRelease))
	state := t.Outcome.State()
	if state.Finished() {
		r.dueAt, r.finishedAt, r.purgeAt = old.dueAt, now, t.purgeAt
	} else {
		r.dueAt, r.finishedAt, r.purgeAt = t.at, 0, 0
	}
	r.settle(state)
	return &r
}

// end applies the outcomes of settlements whose leases were found.
func (w *work) end(items []*settlement) error {
	var stay, keep, gone []*settlement
	for _, t := range items {
		w.versions.Saw(t.Token.Version + 1)
		switch {
		case !t.Outcome.State().Finished():
			stay = append(stay, t)
		case t.purgeAt > w.now:
			keep, gone = append(keep, t), append(gone, t)
		default:
			gone = append(gone, t)
		}
	}
	if err := w.reschedule(stay); err != nil {
		return err
	}
	if err := w.keep(keep); err != nil {
		return err
	}
	return w.drop(gone)
}

// reschedule makes messages scheduled again.
func (w *work) reschedule(items []*settlement) error {
	return w.execEach(w.q.reschedule, len(items), func(i int) []any {
		t := items[i]
		return []any{&t.n, &t.at, bit(t.Outcome == store.OutcomeRelease), bit(t.Attempt != nil), &t.history, &t.Error, &w.now}
	}, nil)
}

// keep copies messages to the finished ones.
func (w *work) keep(items []*settlement) error {
	return w.execEach(w.q.finish, len(items), func(i int) []any {
		t := items[i]
		return []any{&t.n, int64(t.Outcome.State()), &t.purgeAt, bit(t.Attempt != nil), &t.history, &t.Error, &w.now}
	}, nil)
}

// drop takes finished messages out of the live ones and out of the gates that wait for them. What was not kept goes
// with its body; the id of a follow-up stays taken for a while.
func (w *work) drop(items []*settlement) error {
	if err := w.execEach(w.q.deleteLive, len(items), func(i int) []any { return []any{&items[i].n} }, nil); err != nil {
		return err
	}
	for _, t := range items {
		if t.purgeAt <= w.now {
			if err := w.vanish(t.Token.Queue, t.Token.ID, t.parent, t.Token.Version+1, t.n, t.body != 0); err != nil {
				return err
			}
		}
		if t.watched != 0 {
			if err := w.leave(t.Token.Queue, t.Token.ID); err != nil {
				return err
			}
		}
	}
	return nil
}

// vanish does what follows the removal of a message that is not kept: its body goes, and a follow-up leaves a trace.
func (w *work) vanish(queue, id, parent string, version, n int64, body bool) error {
	if body {
		if _, err := w.exec(w.q.deleteBody, n); err != nil {
			return err
		}
	}
	if parent == "" {
		return nil
	}
	_, err := w.exec(w.q.insertTrace, queue, id, w.now+store.TraceTTL.Milliseconds(), version)
	return err
}

// bit returns a truth as databases without booleans keep it.
func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
