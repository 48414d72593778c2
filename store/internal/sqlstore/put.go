package sqlstore

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/belfryhq/belfry/store"
)

// Put accepts messages.
func (s *Store) Put(ctx context.Context, now time.Time, messages []store.Message, mode store.PutMode) ([]store.PutResult, error) {
	p, err := s.newPut(messages, mode)
	if err != nil {
		return nil, err
	}
	run, merge := p, func() {}
	if s.batcher != nil && p.quick() {
		left, err := s.putSet(ctx, now, p)
		if err != nil {
			return nil, err
		}
		p.errs, p.existing = make([]error, len(p.records)), make([]*record, len(p.records))
		if len(left) == 0 {
			s.starts.sawAll(p)
			return p.results()
		}
		run, merge = p.part(left)
	}
	if err := s.write(ctx, "put", now, run.load, run.run); err != nil {
		return nil, err
	}
	merge()
	s.starts.sawAll(p)
	return p.results()
}

// put is a batch of messages on its way in.
type put struct {
	mode    store.PutMode
	records []*record
	gates   []*store.Gate
	load    Load

	// What became of each; made anew by every run.
	errs     []error
	existing []*record
}

// errRefused undoes an atomic batch.
var errRefused = errors.New("refused")

// newPut encodes the messages, which needs no database.
func (s *Store) newPut(messages []store.Message, mode store.PutMode) (*put, error) {
	p := &put{mode: mode, records: make([]*record, len(messages)), gates: make([]*store.Gate, len(messages))}
	for i := range messages {
		r, err := s.recordOf(&messages[i])
		if err != nil {
			return nil, err
		}
		p.records[i] = r
		if r.live() {
			p.gates[i] = messages[i].Gate
		}
		p.load.Rows++
		p.load.Bytes += r.bytes()
	}
	return p, nil
}

// run stores the batch.
func (p *put) run(w *work) error {
	p.errs, p.existing = make([]error, len(p.records)), make([]*record, len(p.records))
	if p.mode&store.Atomic == 0 {
		return p.all(w)
	}
	err := w.conn.Savepoint(w.ctx, func() error { return p.all(w) })
	if errors.Is(err, errRefused) {
		return nil
	}
	return err
}

// all stores the messages in their order: those that need no look at others together, the rest one by one.
func (p *put) all(w *work) error {
	for from := 0; from < len(p.records); {
		to := from
		for to < len(p.records) && p.mode&store.Overwrite == 0 && p.records[to].live() && p.gates[to] == nil {
			to++
		}
		var err error
		if to > from {
			err = p.plain(w, from, to)
		} else {
			to++
			err = p.one(w, from)
		}
		if err != nil {
			return err
		}
		from = to
	}
	return nil
}

// plain stores new live messages.
func (p *put) plain(w *work, from, to int) error {
	var columns [recordWidth + 1]any
	stored := make([]*record, 0, to-from)
	var refused []int
	if err := w.number(p.records[from:to]); err != nil {
		return err
	}
	err := w.execEach(w.q.insertNew, to-from, func(i int) []any {
		r := p.records[from+i]
		p.stamp(w, r, r.version)
		pointers := r.pointers()
		copy(columns[:], pointers[:])
		columns[recordWidth] = w.now
		return columns[:]
	}, func(i int, rows int64) {
		if rows == 0 {
			refused = append(refused, from+i)
		} else {
			stored = append(stored, p.records[from+i])
		}
	})
	if err != nil {
		return err
	}
	if err := w.checkStored(stored); err != nil {
		return err
	}
	if err := w.insertBodies(stored); err != nil {
		return err
	}
	for _, i := range refused {
		if err := p.explain(w, i); err != nil {
			return err
		}
	}
	return nil
}

// ErrAgain is what a transaction ends with that must run again, because another one was faster.
var ErrAgain = errors.New("another transaction was faster")

// checkStored makes the transaction run again when what was stored has an id or a dedup key that a message has which was
// finished while the insert waited for it.
func (w *work) checkStored(stored []*record) error {
	if w.q.checkNew == nil {
		return nil
	}
	args := func(i int) []any {
		r := stored[i]
		return []any{&r.queue, &r.id, &r.dedupKey, &w.now}
	}
	if !w.frozen {
		return w.queryEach(w.q.checkNew, len(stored), args, func(int, Row) error { return ErrAgain })
	}
	return w.db.Read(w.ctx, func(ctx context.Context, c Conn) error { // which sees what is committed by now
		return queryEach(ctx, c, w.q.checkNew, len(stored), args, func(int, Row) error { return ErrOvertaken })
	})
}

// stamp writes what a put owns into the record.
func (p *put) stamp(w *work, r *record, version int64) {
	r.version, r.updatedAt = version, w.now
	if r.createdAt == unset {
		r.createdAt = w.now
	}
}

// explain finds out why a new message was not stored. What a later message of the batch stored is no reason.
func (p *put) explain(w *work, i int) error {
	r := p.records[i]
	old, err := w.findAny(r.queue, r.id)
	if err != nil {
		return err
	}
	if old != nil && !p.storedAfter(i, old.n) {
		return p.refuse(i, store.ErrExists, old)
	}
	holder, err := w.holder(r.queue, r.dedupKey, r.id)
	if err != nil {
		return err
	}
	if holder == nil {
		return errors.New("a message was refused for no reason")
	}
	return p.refuse(i, store.ErrDuplicate, holder)
}

// storedAfter reports whether a row is that of a later message of the batch; a trace has none.
func (p *put) storedAfter(i int, n int64) bool {
	return n != 0 && slices.ContainsFunc(p.records[i+1:], func(r *record) bool { return r.n == n })
}

// findAny returns what has the id: a message, a trace (with the state zero) or nil.
func (w *work) findAny(queue, id string) (*record, error) {
	r, err := w.find(queue, id)
	if r != nil || err != nil {
		return r, err
	}
	version, found, err := w.findTrace(queue, id)
	if err != nil || !found {
		return nil, err
	}
	return &record{queue: queue, id: id, version: version}, nil
}

// refuse notes why a message is not stored, and ends an atomic batch.
func (p *put) refuse(i int, why error, existing *record) error {
	if p.mode&store.Atomic == 0 {
		p.errs[i], p.existing[i] = why, existing
		return nil
	}
	for j := range p.errs {
		p.errs[j] = store.ErrAborted
	}
	p.errs[i], p.existing[i] = why, existing
	return errRefused
}

// one stores a message that may replace another, is finished or has a gate.
func (p *put) one(w *work, i int) error {
	r := p.records[i]
	old, err := w.findAny(r.queue, r.id)
	switch {
	case err != nil:
		return err
	case old != nil && p.mode&store.Overwrite == 0:
		return p.refuse(i, store.ErrExists, old)
	case old != nil && old.inFlight(w.now):
		return p.refuse(i, store.ErrInFlight, old)
	}
	if r.wouldHold(w.now) {
		holder, err := w.holder(r.queue, r.dedupKey, r.id)
		if err != nil {
			return err
		}
		if holder != nil {
			return p.refuse(i, store.ErrDuplicate, holder)
		}
	}
	if err := w.number(p.records[i : i+1]); err != nil {
		return err
	}
	p.stamp(w, r, r.version)
	if old != nil {
		if version := old.version + 1; version > r.version {
			if r.version = version; w.q.rows == nil {
				r.n = version
			}
		}
		if err := w.clear(old); err != nil {
			return err
		}
	}
	return p.accept(w, i, old)
}

// clear takes out what has the id.
func (w *work) clear(old *record) error {
	if old.state != 0 {
		return w.remove(old)
	}
	_, err := w.exec(w.q.deleteTrace, old.queue, old.id)
	return err
}

// accept stores a message in the place of the old one, if there was one, whose watchers it keeps while it is live.
func (p *put) accept(w *work, i int, old *record) error {
	r := p.records[i]
	ids, err := w.members(p.gates[i], r.queue, r.id)
	if err != nil {
		return err
	}
	watched := old != nil && old.live() && old.watched != 0
	if r.live() {
		r.waits, r.watched = int64(len(ids)), 0
		r.settle(store.Scheduled)
		if watched {
			r.watched = 1
		}
	}
	if err := w.insert(r); err != nil {
		return err
	}
	if old == nil && r.live() {
		if err := w.checkStored([]*record{r}); err != nil {
			return err
		}
	}
	if len(ids) > 0 {
		return w.close(r, ids)
	}
	if watched && !r.live() {
		return w.leave(r.queue, r.id)
	}
	return nil
}

// results tells what became of each message.
func (p *put) results() ([]store.PutResult, error) {
	results := make([]store.PutResult, len(p.records))
	for i, r := range p.records {
		if p.errs[i] == nil {
			results[i].Version = r.version
			continue
		}
		results[i].Err = p.errs[i]
		if e := p.existing[i]; e != nil {
			existing, err := e.existing()
			if err != nil {
				return nil, err
			}
			results[i].Existing = existing
		}
	}
	return results, nil
}

// existing returns the message, without payload and history, as it keeps another one out. Of a trace nothing is known.
func (r *record) existing() (*store.Message, error) {
	if r.state == 0 {
		return &store.Message{Queue: r.queue, ID: r.id, State: store.Done}, nil
	}
	bare := *r
	bare.payload, bare.history = nil, ""
	m, err := bare.message()
	return &m, err
}
