package storetest

import (
	"errors"
	"slices"
	"time"

	"github.com/belfryhq/belfry/store"
)

// modelSettle is a Settle. The tokens of its settlements are those that refs stand for.
type modelSettle struct {
	now         modelNow
	refs        []modelRef
	settlements []store.Settlement
}

func (op *modelSettle) play(r *modelRun) {
	settlements := slices.Clone(op.settlements)
	for i := range settlements {
		version := op.refs[i].bind(r.m)
		key := op.refs[i].key
		settlements[i].Token = store.Token{Queue: key.Queue, ID: key.ID, Version: version}
		// One that would take the id of the message it follows is no follow-up that an engine makes.
		settlements[i].FollowUps = slices.DeleteFunc(slices.Clone(settlements[i].FollowUps), func(m store.Message) bool { return m.Key() == key })
		for j := range settlements[i].FollowUps {
			settlements[i].FollowUps[j].Parent = key.ID
		}
	}
	got, err := r.s.Settle(r.t.Context(), op.now.time(), settlements)
	r.must("Settle", err, len(got), len(settlements))
	for i := range settlements {
		want := r.m.settle(&settlements[i], op.now.floor())
		r.sameError("Settle of "+op.refs[i].String(), got[i], want)
	}
}

// settle does what a settlement says.
func (m *model) settle(s *store.Settlement, now time.Time) error {
	for _, f := range s.FollowUps {
		m.touch(f.Key())
	}
	m.touch(store.Key{Queue: s.Token.Queue, ID: s.Token.ID})
	e := m.current(s.Token)
	if e == nil {
		return store.ErrLeaseLost
	}
	next := e.m
	if s.Content != nil {
		next = e.replaced(*s.Content)
		next.Claims, next.DueAt = e.m.Claims, e.m.DueAt
	}
	next.State = s.Outcome.State()
	if next.DedupKey != e.m.DedupKey && m.holder(&next, now) != nil {
		return store.ErrDuplicate
	}
	e.m = next
	e.unlease(next.State)
	e.m.LastError, e.m.FinishedAt, e.m.PurgeAt = s.Error, time.Time{}, time.Time{}
	if s.Attempt != nil {
		e.m.Attempts++
		e.m.History = append(slices.Clone(e.m.History), *s.Attempt)
		e.m.History = e.m.History[max(0, len(e.m.History)-store.MaxHistory):]
	}
	if s.Outcome == store.OutcomeRelease {
		e.m.Claims--
	}
	if e.m.State.Finished() {
		e.m.FinishedAt, e.m.PurgeAt = now, s.PurgeAt
		m.finish(e, now)
	} else {
		e.m.DueAt, e.m.VisibleAt = s.At, s.At
		m.wrote(e, now)
	}
	for _, f := range s.FollowUps {
		if f.State == 0 {
			f.State = store.Scheduled
		}
		if _, err := m.refusal(&f, now, 0); err == nil {
			m.put(f, now)
		}
	}
	return nil
}

// modelReplace is a Replace. The versions of its changes are those that refs stand for.
type modelReplace struct {
	now     modelNow
	refs    []modelRef
	changes []store.Change
}

func (op *modelReplace) play(r *modelRun) {
	changes := slices.Clone(op.changes)
	for i := range changes {
		m := &changes[i].Message
		m.Version = op.refs[i].bind(r.m)
		m.Queue, m.ID = op.refs[i].key.Queue, op.refs[i].key.ID
	}
	got, err := r.s.Replace(r.t.Context(), op.now.time(), changes)
	r.must("Replace", err, len(got), len(changes))
	for i := range changes {
		allowed := r.m.replace(&changes[i], op.now.floor())
		if !slices.ContainsFunc(allowed, func(want error) bool { return modelSameError(got[i], want) }) {
			r.fail("Replace of %s gave %v, want %v", op.refs[i], got[i], allowed)
		}
	}
}

// replace does what a change says. It returns the answers that are right: a change at an old version of a message under
// a live lease may be refused for either.
func (m *model) replace(c *store.Change, now time.Time) []error {
	key := c.Message.Key()
	m.touch(key)
	e := m.message(key)
	if e == nil {
		return []error{store.ErrNotFound}
	}
	if c.Mode == store.Mark {
		if !e.inFlight(now) {
			return []error{store.ErrConflict}
		}
		e.m.Stop = true
		return []error{nil}
	}
	var refused []error
	if c.Mode == store.Swap && e.inFlight(now) {
		refused = append(refused, store.ErrInFlight)
	}
	if e.wrote || e.m.Version != c.Message.Version {
		refused = append(refused, store.ErrConflict)
	}
	if refused != nil {
		return refused
	}
	next := e.replaced(c.Message)
	held := e.m.DedupKey == next.DedupKey && modelHolds(&e.m, now)
	if !held && m.holder(&next, now) != nil {
		return []error{store.ErrDuplicate}
	}
	e.m = next
	e.unlease(next.State)
	if next.State.Finished() {
		m.finish(e, now)
		return []error{nil}
	}
	e.m.VisibleAt = e.m.DueAt
	if e.m.Waits > 0 {
		e.m.VisibleAt = store.Never
	}
	m.wrote(e, now)
	return []error{nil}
}

// modelSameError reports whether an error is the sentinel; nil asks for none.
func modelSameError(got, want error) bool {
	return (got == nil) == (want == nil) && errors.Is(got, want)
}
