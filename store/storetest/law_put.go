package storetest

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/belfryhq/belfry/store"
)

func putLaws() []Law {
	return []Law{
		{"put/assigns", "Put assigns what the store owns, and creation, state and due instant where they are not given", putAssigns},
		{"put/finished", "a finished message is stored with its history as it is given and is never claimed", putFinished},
		{"put/id-taken", "a message whose id is taken is not stored, and the result carries the one that has it", putIDTaken},
		{"put/dedup-taken", "a message whose dedup key is taken is not stored, and the result carries the one that holds it", putDedupTaken},
		{"put/dedup-free", "a dedup key is free as soon as its holder is finished or gone, in every other queue, and when it is empty", putDedupFree},
		{"put/dedup-until", "a finished message holds its dedup key until DedupUntil", putDedupUntil},
		{"put/race", "of messages put at once with one id or one dedup key, one is stored", putRace},
		{"put/overwrite", "Overwrite replaces what is stored, live or finished, history included, and the version grows", putOverwrite},
		{"put/overwrite-leased", "Overwrite is refused under a live lease, and makes the token of one that has run out stale", putOverwriteLeased},
		{"put/overwrite-dedup", "Overwrite is refused where another message holds the dedup key, and changes nothing then", putOverwriteDedup},
		{"put/atomic", "Atomic stores all messages of a call or none", putAtomic},
		{"put/version", "an id that is used again never repeats a version", putVersion},
	}
}

func putAssigns(e *env) {
	q := e.name()
	bare := e.message(q, "bare", at(time.Second))
	lies := e.message(q, "lies", at(time.Second))
	lies.DueAt, lies.CreatedAt, lies.State = at(2*time.Second), at(-time.Hour), store.Scheduled
	lies.Version, lies.VisibleAt, lies.UpdatedAt, lies.Waits = 7, at(time.Hour), at(time.Hour), 3
	lies.Owner, lies.Epoch, lies.Stop = "someone", 4, true
	versions := e.put(start.Add(999*time.Microsecond), bare, lies)
	wants := []store.Message{bare, lies}
	wants[0].CreatedAt, wants[0].DueAt, wants[0].State = start, bare.FireAt, store.Scheduled
	wants[1].Owner, wants[1].Epoch, wants[1].Stop, wants[1].Waits = "", 0, false, 0
	for i, want := range wants {
		e.step("%s", want.ID)
		want.Version, want.VisibleAt, want.UpdatedAt = versions[i], want.DueAt, start
		e.same(e.get(want.Key()), want)
		if want.Version < start.UnixMicro() {
			e.fail("the version %d lies before the accept instant in microseconds, %d", want.Version, start.UnixMicro())
		}
	}
}

func putFinished(e *env) {
	q := e.name()
	for i, state := range finished {
		e.step("%s", state)
		m := full(q, state.String(), state, i+1)
		e.put(start, m)
		got := e.get(m.Key())
		e.same(got, m, owned...)
		e.instant("VisibleAt", got.VisibleAt, time.Time{})
		e.instant("UpdatedAt", got.UpdatedAt, start)
	}
	e.step("claimed")
	e.ids(e.claim(at(24*365*time.Hour), q, 10))
	e.ids(e.claimKeys(at(24*365*time.Hour), store.Key{Queue: q, ID: "done"}))
	e.step("more attempts than are kept")
	m := full(q, "long", store.Done, 9)
	for i := range store.MaxHistory + 5 {
		m.History = append(m.History, store.Attempt{Number: i})
	}
	e.put(start, m)
	m.History = m.History[len(m.History)-store.MaxHistory:]
	e.same(e.get(m.Key()), m, owned...)
}

// holders puts a message, changed by f, in every state that one can be in and returns their ids.
func (e *env) holders(q string, f func(*store.Message)) []store.Message {
	e.Helper()
	var ms []store.Message
	for _, id := range []string{"scheduled", "leased", "done", "dead", "canceled"} {
		m := e.message(q, id, start)
		if state, _ := store.ParseState(id); state.Finished() {
			m.State, m.FinishedAt, m.PurgeAt = state, start, store.Never
		}
		m.History = []store.Attempt{{Number: 1, Error: "first"}}
		f(&m)
		e.put(start, m)
		ms = append(ms, m)
	}
	e.ids(e.claimKeys(start, ms[1].Key()), "leased")
	return ms
}

func putIDTaken(e *env) {
	q := e.name()
	ms := e.holders(q, func(*store.Message) {})
	for _, m := range ms {
		e.step("%s", m.ID)
		before := e.get(m.Key())
		again := e.message(q, m.ID, at(time.Hour))
		again.Payload, again.Kind = []byte("another"), "other"
		r := e.tryPut(at(time.Second), 0, again)[0]
		e.is(r.Err, store.ErrExists, "Put of a taken id")
		e.existing(r, before)
		e.same(e.get(m.Key()), before)
	}
	e.step("in the same batch")
	first, second := e.message(q, "twin", start), e.message(q, "twin", at(time.Hour))
	res := e.tryPut(start, 0, first, second, e.message(q, "next", start))
	e.is(res[0].Err, nil, "the first")
	e.is(res[1].Err, store.ErrExists, "the second")
	e.is(res[2].Err, nil, "one with an id of its own")
	e.existing(res[1], e.get(first.Key()))
	e.instant("FireAt", e.get(first.Key()).FireAt, start)
	e.step("the id in another queue")
	e.put(start, e.message(e.name(), "twin", start))
	e.step("id and dedup key taken by the same message")
	m := e.message(q, "both", start)
	m.DedupKey = "both"
	e.put(start, m)
	e.is(e.tryPut(start, 0, m)[0].Err, store.ErrExists, "Put once more")
}

// existing fails unless a result carries the message, without payload and history.
func (e *env) existing(r store.PutResult, want store.Message) {
	e.Helper()
	if r.Existing == nil {
		e.fail("the result of a refused Put carries no message")
	}
	e.same(*r.Existing, want, "Payload", "History")
	equal(e, "bytes of payload and attempts in the result", len(r.Existing.Payload)+len(r.Existing.History), 0)
}

func putDedupTaken(e *env) {
	q := e.name()
	ms := e.holders(q, func(m *store.Message) { m.DedupKey, m.DedupUntil = m.ID, at(time.Hour) })
	for _, m := range ms {
		e.step("%s", m.ID)
		other := e.message(q, "other", start)
		other.DedupKey = m.ID
		r := e.tryPut(at(time.Second), 0, other)[0]
		e.is(r.Err, store.ErrDuplicate, "Put with a taken dedup key")
		e.existing(r, e.get(m.Key()))
		e.absent(other.Key())
	}
	e.step("in the same batch")
	twins := e.messages(q, 3, start)
	for i := range twins {
		twins[i].DedupKey = "twin"
	}
	res := e.tryPut(start, 0, twins...)
	for i, r := range res {
		e.is(r.Err, []error{nil, store.ErrDuplicate, store.ErrDuplicate}[i], twins[i].ID)
	}
	e.existing(res[2], e.get(twins[0].Key()))
	e.absent(twins[1].Key())
	e.step("beyond DedupUntil, but live")
	late := e.message(q, "late", start)
	late.DedupKey = "scheduled"
	e.is(e.tryPut(at(2*time.Hour), 0, late)[0].Err, store.ErrDuplicate, "Put with the key of a live message")
}

func putDedupFree(e *env) {
	q, now := e.name(), start
	next := func(what string) store.Message {
		e.step("%s", what)
		m := e.message(q, e.name(), start)
		m.DedupKey = "key"
		return e.hold(now, m)
	}
	for _, o := range []store.Outcome{store.OutcomeDone, store.OutcomeBury, store.OutcomeCancel} {
		e.settle(now, store.Settlement{Token: ptr(next(o.State().String() + " and kept")).Token(), Outcome: o, PurgeAt: store.Never})
		e.settle(now, store.Settlement{Token: ptr(next(o.State().String() + " and removed")).Token(), Outcome: o})
	}
	m := next("canceled from outside")
	m.State, m.FinishedAt, m.PurgeAt = store.Canceled, now, store.Never
	e.is(e.tryReplace(now, store.Revoke, m), nil, "Revoke")
	m = next("given up for another")
	m.DedupKey, m.State = "other", store.Scheduled
	e.is(e.tryReplace(now, store.Revoke, m), nil, "Revoke")
	m = next("held")
	e.step("in another queue")
	m.Queue, m.State = e.name(), store.Scheduled
	e.put(now, m)
	e.step("no key")
	e.put(now, e.messages(q, 3, now)...)
}

func ptr[T any](v T) *T { return &v }

func putDedupUntil(e *env) {
	q := e.name()
	try := func(now time.Time) error {
		m := e.message(q, e.name(), now)
		m.DedupKey, m.DedupUntil = "key", at(time.Hour)
		return e.tryPut(now, 0, m)[0].Err
	}
	m := e.message(q, "holder", start)
	m.DedupKey, m.DedupUntil = "key", at(time.Hour)
	held := e.hold(start, m)
	e.settle(start, store.Settlement{Token: held.Token(), Outcome: store.OutcomeDone, PurgeAt: store.Never})
	e.step("a millisecond before")
	e.is(try(at(time.Hour-time.Millisecond)), store.ErrDuplicate, "Put")
	e.step("at the instant")
	e.is(try(at(time.Hour)), nil, "Put")
	e.step("while the next one is live")
	e.is(try(at(2*time.Hour)), store.ErrDuplicate, "Put")
	e.step("the finished holder")
	e.same(e.get(m.Key()), m, append(settledFields, "CreatedAt")...)
}

func putRace(e *env) {
	q := e.name()
	for _, what := range []string{"id", "dedup key"} {
		e.step("%s", what)
		var stored atomic.Int32
		e.together(64, func(i int) error {
			m := e.message(q, what, start)
			m.Payload = fmt.Append(nil, i)
			if what != "id" {
				m.ID, m.DedupKey = fmt.Sprint(i), what
			}
			res, err := e.s.Put(e.Context(), start, []store.Message{m}, 0)
			if err != nil || len(res) != 1 {
				return fmt.Errorf("put gave %d results and %w", len(res), err)
			}
			r := res[0]
			switch {
			case r.Err == nil:
				stored.Add(1)
			case what == "id" && !errors.Is(r.Err, store.ErrExists), what != "id" && !errors.Is(r.Err, store.ErrDuplicate):
				return fmt.Errorf("put refused: %w", r.Err)
			case r.Existing == nil:
				return errors.New("the result of a refused Put carries no message")
			}
			return nil
		})
		equal(e, "messages whose Put said that they are stored", stored.Load(), 1)
	}
	equal(e, "messages that are stored", e.total(store.Query{Queue: q}), 2)
}

func putOverwrite(e *env) {
	q := e.name()
	for _, m := range e.holders(q, func(m *store.Message) { m.DedupKey = m.ID }) {
		for i, state := range append(finished, store.Scheduled) {
			e.step("%s over %s", state, m.ID)
			before, now := e.get(m.Key()), at(time.Duration(i+1)*lease)
			next := full(q, m.ID, state, i+1)
			next.DedupKey = m.ID
			r := e.tryPut(now, store.Overwrite, next)[0]
			e.is(r.Err, nil, "Put")
			got := e.get(m.Key())
			e.same(got, next, owned...)
			equal(e, "Version of the result", r.Version, got.Version)
			if got.Version <= before.Version {
				e.fail("the version went from %d to %d", before.Version, got.Version)
			}
			e.instant("UpdatedAt", got.UpdatedAt, now)
			equal(e, "Owner", got.Owner, "")
		}
	}
	equal(e, "messages", e.total(store.Query{Queue: q}), 5)
	e.step("of nothing")
	e.is(e.tryPut(start, store.Overwrite, e.message(q, "new", start))[0].Err, nil, "Put")
	e.step("twice in a batch")
	first, second := e.message(q, "twin", start), e.message(q, "twin", at(time.Hour))
	for _, r := range e.tryPut(start, store.Overwrite, first, second) {
		e.is(r.Err, nil, "Put")
	}
	e.instant("FireAt", e.get(second.Key()).FireAt, second.FireAt)
}

func putOverwriteLeased(e *env) {
	held := e.hold(start, e.message(e.name(), "m", start))
	next := e.message(held.Queue, "m", at(time.Hour))
	before := e.get(held.Key())
	e.step("a millisecond before the lease's end")
	r := e.tryPut(at(lease-time.Millisecond), store.Overwrite, next)[0]
	e.is(r.Err, store.ErrInFlight, "Put")
	e.existing(r, before)
	e.same(e.get(held.Key()), before)
	e.step("at the lease's end")
	e.is(e.tryPut(at(lease), store.Overwrite, next)[0].Err, nil, "Put")
	e.same(e.get(held.Key()), next, append(owned, "DueAt", "State", "CreatedAt")...)
	e.stale(at(lease), held.Token())
}

func putOverwriteDedup(e *env) {
	q := e.name()
	holder, m := e.message(q, "holder", start), e.message(q, "m", start)
	holder.DedupKey, m.DedupKey = "key", "own"
	e.put(start, holder, m)
	before := e.get(m.Key())
	m.DedupKey = "key"
	r := e.tryPut(at(time.Second), store.Overwrite, m)[0]
	e.is(r.Err, store.ErrDuplicate, "Put with the key of another")
	e.existing(r, e.get(holder.Key()))
	e.same(e.get(m.Key()), before)
	m.DedupKey = "own"
	e.is(e.tryPut(at(time.Second), store.Overwrite, m)[0].Err, nil, "Put with its own key")
}

func putAtomic(e *env) {
	q := e.name()
	taken, holder := e.message(q, "taken", start), e.message(q, "holder", start)
	holder.DedupKey = "key"
	e.put(start, taken, holder)
	duplicate := e.message(q, "duplicate", start)
	duplicate.DedupKey = "key"
	inFlight := e.message(q, "inflight", start)
	e.hold(start, inFlight)
	for name, c := range map[string]struct {
		refused store.Message
		mode    store.PutMode
		want    error
	}{
		"id taken":       {taken, store.Atomic, store.ErrExists},
		"dedup taken":    {duplicate, store.Atomic, store.ErrDuplicate},
		"in flight":      {inFlight, store.Atomic | store.Overwrite, store.ErrInFlight},
		"twin in a call": {e.message(q, "a", start), store.Atomic, store.ErrExists},
	} {
		e.step("%s", name)
		before := e.get(taken.Key())
		a, b := e.message(q, "a", start), e.message(q, "b", start)
		b.DedupKey = "free"
		res := e.tryPut(at(time.Second), c.mode, a, c.refused, b)
		e.is(res[0].Err, store.ErrAborted, "a message before the refused one")
		e.is(res[1].Err, c.want, "the refused one")
		e.is(res[2].Err, store.ErrAborted, "a message after the refused one")
		e.absent(a.Key())
		e.absent(b.Key())
		e.same(e.get(taken.Key()), before)
	}
	e.step("none refused")
	for _, r := range e.tryPut(start, store.Atomic, e.message(q, "a", start), e.message(q, "b", start)) {
		e.is(r.Err, nil, "Put")
	}
	equal(e, "messages", e.total(store.Query{Queue: q}), 5)
}

func putVersion(e *env) {
	q, seen := e.name(), map[int64]string{}
	note := func(version int64, what string) {
		e.Helper()
		if before, ok := seen[version]; ok {
			e.fail("the version %d is that of %s and of %s", version, before, what)
		}
		seen[version] = what
	}
	for life := range 5 {
		m := e.message(q, "m", start)
		note(e.put(start, m)[0], fmt.Sprintf("life %d", life))
		for claim := range 3 {
			held := only(e, e.claim(start, q, 1))
			note(held.Version, fmt.Sprintf("claim %d of life %d", claim, life))
			s := store.Settlement{Token: held.Token(), Outcome: store.OutcomeRelease, At: start}
			if claim == 2 {
				s.Outcome = store.OutcomeDone
			}
			e.settle(start, s)
		}
		e.absent(m.Key())
	}
}
