package storetest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/belfryhq/belfry/store"
)

// modelRef names a version of a message without naming a number, since stores choose their own.
type modelRef struct {
	key  store.Key
	back int // how many versions before the latest one that was seen
	// slot, from 1, stands for one of the messages that the model has when the operation is first played: one under a
	// lease, or any. It is then bound to that message's key, so that the operation means the same when others are gone.
	slot   int
	leased bool
}

// bind returns the version that the reference stands for now; one that no store gives when there is none.
func (f *modelRef) bind(m *model) int64 {
	if f.slot > 0 {
		keys := m.keys(func(e *modelEntry) bool { return !e.trace && (!f.leased || e.m.State == store.Leased) })
		if len(keys) > 0 {
			f.key = keys[(f.slot-1)%len(keys)]
		}
		f.slot = 0
	}
	seen := m.versions[f.key]
	if f.back >= len(seen) {
		return 1
	}
	return seen[len(seen)-1-f.back]
}

func (f modelRef) String() string {
	text := modelKey(f.key)
	if f.back > 0 {
		text += fmt.Sprintf("@-%d", f.back)
	}
	return text
}

func modelKey(k store.Key) string { return k.Queue + ":" + k.ID }

// modelPut is a Put.
type modelPut struct {
	now      modelNow
	messages []store.Message
	mode     store.PutMode
}

func (op *modelPut) play(r *modelRun) {
	now := op.now.floor()
	if op.mode&store.Atomic != 0 {
		if refused := r.m.foresee(op.messages, now, op.mode); refused >= 0 {
			op.playAborted(r, refused)
			return
		}
	}
	got, err := r.s.Put(r.t.Context(), op.now.time(), op.messages, op.mode)
	r.must("Put", err, len(got), len(op.messages))
	for i, msg := range op.messages {
		if msg.State == 0 {
			msg.State = store.Scheduled
		}
		by, want := r.m.refusal(&msg, now, op.mode)
		r.sameError("Put of "+modelKey(msg.Key()), got[i].Err, want)
		if want != nil {
			r.sameExisting(got[i].Existing, by)
			r.m.touch(msg.Key())
			continue
		}
		e := r.m.put(msg, now)
		if err := r.m.saw(e, got[i].Version); err != nil {
			r.fail("Put of %s gave the version %d: %v", modelKey(msg.Key()), got[i].Version, err)
		}
	}
}

// foresee returns which message of an atomic batch is the first to be refused; -1: none. It plays the batch on a copy.
func (m *model) foresee(messages []store.Message, now time.Time, mode store.PutMode) int {
	trial := newModel()
	for key, e := range m.held {
		trial.held[key] = &modelEntry{m: e.m, trace: e.trace}
	}
	for i, msg := range messages {
		if msg.State == 0 {
			msg.State = store.Scheduled
		}
		if _, err := trial.refusal(&msg, now, mode); err != nil {
			return i
		}
		trial.put(msg, now)
	}
	return -1
}

// playAborted plays an atomic batch of which a message is refused. Whether a later one that would be refused too says
// so or is aborted like the rest is left to the store.
func (op *modelPut) playAborted(r *modelRun, refused int) {
	got, err := r.s.Put(r.t.Context(), op.now.time(), op.messages, op.mode)
	r.must("Put", err, len(got), len(op.messages))
	for i, res := range got {
		what := fmt.Sprintf("atomic Put of %s, of which message %d is refused", modelKey(op.messages[i].Key()), refused)
		switch {
		case i < refused:
			r.sameError(what, res.Err, store.ErrAborted)
		case res.Err == nil:
			r.fail("%s: it says that it stored it", what)
		case i == refused && errors.Is(res.Err, store.ErrAborted):
			r.fail("%s: no message says why", what)
		}
		r.m.touch(op.messages[i].Key())
	}
}

// modelClaim is a Claim.
type modelClaim struct{ claim store.Claim }

func (op *modelClaim) play(r *modelRun) {
	c := &op.claim
	now := store.Floor(c.Now)
	got, err := r.s.Claim(r.t.Context(), *c)
	r.must("Claim", err, len(got.Queues), len(c.Queues))
	if got.Revision != r.m.revision {
		r.fail("Claim told the revision %d, which is %d", got.Revision, r.m.revision)
	}
	byKey := r.m.claimKeys(c, now)
	if len(got.Messages) >= len(byKey) { // they may come in any order
		slices.SortFunc(got.Messages[:len(byKey)], func(a, b store.Message) int {
			return cmp.Or(strings.Compare(a.Queue, b.Queue), strings.Compare(a.ID, b.ID))
		})
	}
	want := byKey
	lefts := make([]modelLeft, len(c.Queues))
	for i := range c.Queues {
		var taken []*modelEntry
		taken, lefts[i] = r.m.claimQueue(c, &c.Queues[i], now)
		want = append(want, taken...)
	}
	r.sameClaimed(got.Messages, want)
	for i, left := range lefts {
		r.sameLeft(c.Queues[i].Queue, got.Queues[i], left)
	}
}

// claimKeys leases what is claimed by address, and returns it sorted.
func (m *model) claimKeys(c *store.Claim, now time.Time) []*modelEntry {
	var taken []*modelEntry
	for _, key := range c.Keys {
		if e := m.message(key); e != nil && e.m.State.Live() && !e.m.VisibleAt.After(now) {
			m.lease(e, c, now)
			taken = append(taken, e)
		}
	}
	slices.SortFunc(taken, func(a, b *modelEntry) int {
		return cmp.Or(strings.Compare(a.m.Queue, b.m.Queue), strings.Compare(a.m.ID, b.m.ID))
	})
	return taken
}

// modelLeft is what a claim should tell of a queue.
type modelLeft struct {
	next    time.Time
	limited bool
	freeAt  []time.Time // any of these
}

// claimQueue leases what a queue has for a claim.
func (m *model) claimQueue(c *store.Claim, qc *store.QueueClaim, now time.Time) ([]*modelEntry, modelLeft) {
	slots, byRate, byConcurrency := qc.Limit, qc.Limit, qc.Limit
	if qc.Concurrency > 0 {
		live := m.keys(func(e *modelEntry) bool { return e.m.Queue == qc.Queue && e.inFlight(now) })
		byConcurrency = max(0, qc.Concurrency-len(live))
	}
	every, us := qc.Rate.Every.Microseconds(), now.UnixMicro()
	if every > 0 {
		byRate = 0
		arrival := max(m.arrival(qc.Queue), us)
		for arrival+int64(byRate+1)*every <= us+int64(qc.Rate.Burst)*every {
			byRate++
		}
	}
	slots = min(slots, byRate, byConcurrency)

	due := m.line(qc.Queue, func(e *modelEntry) bool { return !e.m.VisibleAt.After(now) }, true)
	ahead := m.line(qc.Queue, func(e *modelEntry) bool {
		return e.m.State == store.Scheduled && e.m.VisibleAt.After(now) && !e.m.VisibleAt.After(store.Floor(c.Now.Add(c.Ahead)))
	}, false)
	left := modelLeft{limited: slots < qc.Limit && len(due) > slots}
	taken := due[:min(slots, len(due))]
	if c.Ahead > 0 {
		taken = append(taken, ahead[:min(slots-len(taken), len(ahead))]...)
	}
	for _, e := range taken {
		m.lease(e, c, now)
	}
	if every > 0 && len(taken) > 0 {
		m.arrivals[qc.Queue] = max(m.arrival(qc.Queue), us) + int64(len(taken))*every
	}

	left.next = store.Never
	for _, e := range m.line(qc.Queue, func(*modelEntry) bool { return true }, false) {
		left.next = store.Earlier(left.next, e.m.VisibleAt)
	}
	if left.limited && byRate <= byConcurrency {
		left.freeAt = append(left.freeAt, store.Ceil(time.UnixMicro(m.arrival(qc.Queue)+every-int64(qc.Rate.Burst)*every)))
	}
	if left.limited && byConcurrency <= byRate {
		left.freeAt = append(left.freeAt, time.Time{})
	}
	return taken, left
}

// arrival returns the theoretical arrival time of a queue; one long past if it has none.
func (m *model) arrival(queue string) int64 {
	if us, ok := m.arrivals[queue]; ok {
		return us
	}
	return start.Add(-365 * 24 * time.Hour).UnixMicro()
}

// line returns the live messages of a queue that pass, in the order of (Priority,) VisibleAt and ID.
func (m *model) line(queue string, pass func(*modelEntry) bool, priority bool) []*modelEntry {
	var line []*modelEntry
	for _, key := range m.keys(func(e *modelEntry) bool { return !e.trace && e.m.State.Live() && e.m.Queue == queue && pass(e) }) {
		line = append(line, m.held[key])
	}
	slices.SortStableFunc(line, func(a, b *modelEntry) int {
		if c := cmp.Compare(a.m.Priority, b.m.Priority); priority && c != 0 {
			return c
		}
		return a.m.VisibleAt.Compare(b.m.VisibleAt)
	})
	return line
}

// lease is what a claim does to a message.
func (m *model) lease(e *modelEntry, c *store.Claim, now time.Time) {
	e.m.State, e.m.Owner, e.m.Epoch, e.m.Stop = store.Leased, c.Owner, c.Epoch, false
	e.m.Claims++
	e.m.VisibleAt = c.Until
	m.wrote(e, now)
}

// modelExtend is an Extend.
type modelExtend struct {
	now    modelNow
	tokens []modelRef
	until  time.Time
}

func (op *modelExtend) play(r *modelRun) {
	var tokens []store.Token
	for i := range op.tokens {
		version := op.tokens[i].bind(r.m)
		tokens = append(tokens, store.Token{Queue: op.tokens[i].key.Queue, ID: op.tokens[i].key.ID, Version: version})
	}
	got, err := r.s.Extend(r.t.Context(), op.now.time(), tokens, op.until)
	r.must("Extend", err, len(got), len(tokens))
	for i, token := range tokens {
		want := store.Lost
		if e := r.m.current(token); e != nil && e.inFlight(op.now.floor()) {
			want = store.Extended
			if e.m.Stop {
				want = store.Stopping
			}
			if !op.until.IsZero() {
				e.m.VisibleAt = op.until
			}
		}
		if got[i] != want {
			r.fail("Extend of %s answered %d, want %d", op.tokens[i], got[i], want)
		}
		r.m.touch(op.tokens[i].key)
	}
}

// current returns the message that a token holds, or nil.
func (m *model) current(t store.Token) *modelEntry {
	e := m.message(store.Key{Queue: t.Queue, ID: t.ID})
	if e == nil || e.m.State != store.Leased || e.wrote || e.m.Version != t.Version {
		return nil
	}
	return e
}

// modelForfeit is a Forfeit.
type modelForfeit struct {
	now   modelNow
	owner string
	epoch int64
}

func (op *modelForfeit) play(r *modelRun) {
	got, err := r.s.Forfeit(r.t.Context(), op.now.time(), op.owner, op.epoch)
	lost := r.m.keys(func(e *modelEntry) bool {
		return e.m.State == store.Leased && e.m.Owner == op.owner && e.m.Epoch < op.epoch
	})
	r.must("Forfeit", err, got, len(lost))
	for _, key := range lost {
		e := r.m.held[key]
		e.unlease(store.Scheduled)
		e.m.VisibleAt = e.m.DueAt
		r.m.wrote(e, op.now.floor())
	}
}
