package storetest

import (
	"time"

	"github.com/belfryhq/belfry/store"
)

func followUpLaws() []Law {
	return []Law{
		{"followup/put", "follow-ups are put with their settlement, as Put would", followUpPut},
		{"followup/gate", "a follow-up's gate waits for what is live, the follow-ups before it included", followUpGate},
		{"followup/taken", "a follow-up whose id or dedup key is taken is left as it is, and the settlement stands", followUpTaken},
		{"followup/stale", "a stale settlement puts no follow-up", followUpStale},
		{"followup/trace", "the id of a follow-up that left no finished message stays taken, so that a repeated one changes nothing", followUpTrace},
		{"followup/trace-hidden", "the trace of a follow-up is no message: no reader sees it", followUpTraceHidden},
		{"followup/trace-purged", "the trace of a follow-up is purged after TraceTTL", followUpTracePurged},
	}
}

// follow settles a new message as told, with the follow-ups, and returns its key.
func (e *env) follow(q string, s store.Settlement, follow ...store.Message) store.Key {
	e.Helper()
	m := e.hold(start, e.message(q, e.name(), start))
	s.Token, s.FollowUps = m.Token(), follow
	for i := range follow {
		follow[i].Parent = m.ID
	}
	e.settle(start, s)
	return m.Key()
}

func followUpPut(e *env) {
	q1, q2 := e.name(), e.name()
	for i, o := range outcomes {
		for _, purge := range []time.Time{{}, store.Never} {
			e.step("%s, kept: %t", o.State(), !purge.IsZero())
			near, far := full(q1, e.name(), store.Scheduled, 2*i), full(q2, e.name(), store.Scheduled, 2*i+1)
			near.DedupKey, far.DedupKey = near.ID, far.ID
			bare := e.message(q2, e.name(), at(time.Hour))
			finished := full(q2, e.name(), store.Dead, 2*i)
			finished.DedupKey = finished.ID
			follow := []store.Message{near, far, bare, finished}
			e.follow(q1, store.Settlement{Outcome: o, At: at(time.Hour), PurgeAt: purge}, follow...)
			for _, m := range []store.Message{near, far, finished} {
				e.same(e.get(m.Key()), m, append(owned, "Parent")...)
			}
			got := e.get(bare.Key())
			bare.State, bare.DueAt, bare.VisibleAt, bare.CreatedAt, bare.UpdatedAt = store.Scheduled, bare.FireAt, bare.FireAt, start, start
			e.same(got, bare, "Version", "Parent")
			if got.Parent == "" || got.Version < start.UnixMicro() {
				e.fail("Parent is %q, Version is %d", got.Parent, got.Version)
			}
			e.ids(e.claimKeys(at(time.Hour), near.Key()), near.ID)
			e.ids(e.claimKeys(at(time.Hour), far.Key()), far.ID)
		}
	}
}

func followUpGate(e *env) {
	q := e.name()
	e.put(start, e.message(q, "there", start))
	a, b, join := e.message(q, "a", at(time.Hour)), e.message(q, "b", at(time.Hour)), e.message(q, "join", start)
	join.Gate = &store.Gate{IDs: []string{"a", "b", "there", "missing"}}
	e.follow(q, store.Settlement{Outcome: store.OutcomeDone}, a, b, join)
	got := e.get(join.Key())
	equal(e, "Waits", got.Waits, 3)
	e.instant("VisibleAt", got.VisibleAt, store.Never)
	for _, id := range []string{"there", "a", "b"} {
		e.ids(e.claimKeys(at(time.Hour), join.Key()))
		held := only(e, e.claimKeys(at(time.Hour), store.Key{Queue: q, ID: id}))
		e.settle(at(time.Hour), store.Settlement{Token: held.Token(), Outcome: store.OutcomeDone})
	}
	e.ids(e.claimKeys(at(time.Hour), join.Key()), "join")
}

func followUpTaken(e *env) {
	q := e.name()
	ms := e.holders(q, func(m *store.Message) { m.DedupKey, m.DedupUntil = "key of "+m.ID, store.Never })
	for _, m := range ms {
		e.step("%s", m.ID)
		before := e.get(m.Key())
		sameID, sameKey := e.message(q, m.ID, at(time.Hour)), e.message(q, e.name(), at(time.Hour))
		sameKey.DedupKey = m.DedupKey
		first, second := e.message(q, e.name(), at(time.Hour)), e.message(q, "", at(2*time.Hour))
		second.ID = first.ID
		parent := e.follow(q, store.Settlement{Outcome: store.OutcomeDone, PurgeAt: store.Never}, sameID, sameKey, first, second)
		equal(e, "State of the parent", e.get(parent).State, store.Done)
		e.same(e.get(m.Key()), before)
		e.absent(sameKey.Key())
		e.instant("FireAt", e.get(first.Key()).FireAt, first.FireAt)
	}
}

func followUpStale(e *env) {
	q := e.name()
	m := e.hold(start, e.message(q, "m", start))
	e.ids(e.claimKeys(at(lease), m.Key()), "m")
	follow := e.message(q, "follow", start)
	follow.Parent = "m"
	for _, o := range outcomes {
		e.step("%s", o.State())
		err := e.trySettle(at(lease), store.Settlement{Token: m.Token(), Outcome: o, At: start, FollowUps: []store.Message{follow}})[0]
		e.is(err, store.ErrLeaseLost, "Settle with a stale token")
		e.absent(follow.Key())
	}
	equal(e, "messages", e.total(store.Query{Queue: q}), 1)
}

// trace puts a follow-up and finishes it so that nothing but its id is left.
func (e *env) trace(q, id string, o store.Outcome) store.Message {
	e.Helper()
	m := e.message(q, id, start)
	e.follow(q, store.Settlement{Outcome: store.OutcomeDone}, m)
	m = e.get(m.Key())
	if o == 0 { // from outside
		change := m
		change.State = store.Canceled
		e.replace(start, change)
		return m
	}
	held := only(e, e.claimKeys(start, m.Key()))
	e.settle(start, store.Settlement{Token: held.Token(), Outcome: o})
	return m
}

func followUpTrace(e *env) {
	q := e.name()
	for _, o := range []store.Outcome{store.OutcomeDone, store.OutcomeBury, store.OutcomeCancel, 0} {
		e.step("%d", o)
		m := e.trace(q, e.name(), o)
		again := e.message(q, m.ID, start)
		e.follow(q, store.Settlement{Outcome: store.OutcomeDone}, again)
		e.absent(m.Key())
		r := e.tryPut(at(store.TraceTTL-time.Millisecond), 0, again)[0]
		e.is(r.Err, store.ErrExists, "Put")
		if r.Existing == nil {
			e.fail("the result of a refused Put carries no message")
		}
		e.same(*r.Existing, store.Message{Queue: q, ID: m.ID, State: store.Done})
		e.ids(e.claim(at(store.TraceTTL), q, 10))
	}
	e.step("kept, hence no trace")
	m := e.message(q, "kept", start)
	e.follow(q, store.Settlement{Outcome: store.OutcomeDone}, m)
	held := only(e, e.claimKeys(start, m.Key()))
	e.settle(start, store.Settlement{Token: held.Token(), Outcome: store.OutcomeDone, PurgeAt: store.Never})
	equal(e, "State", e.get(m.Key()).State, store.Done)
	e.step("overwritten")
	m = e.trace(q, "over", store.OutcomeDone)
	e.is(e.tryPut(start, store.Overwrite, e.message(q, "over", start))[0].Err, nil, "Overwrite of a trace")
	if v := e.get(m.Key()).Version; v <= m.Version {
		e.fail("the version went from %d to %d", m.Version, v)
	}
}

func followUpTraceHidden(e *env) {
	e.fresh()
	q := e.name()
	m := e.trace(q, "f", store.OutcomeDone)
	e.absent(m.Key())
	for _, query := range []store.Query{{}, {Queue: q}, {Parent: m.Parent}, {States: []store.State{store.Done}}, {Order: store.ByFinished}, {Prefix: q[:3], Order: store.ByFireAt}} {
		equal(e, "messages listed", len(e.list(query).Messages), 0)
		equal(e, "messages counted", e.total(query), 0)
	}
	hints, err := e.s.Queues(e.Context(), store.Window{})
	e.is(err, nil, "Queues")
	equal(e, "queues", len(hints), 0)
	for _, mode := range []store.ChangeMode{store.Swap, store.Revoke, store.Mark} {
		change := m
		change.State = store.Scheduled
		e.is(e.tryReplace(start, mode, change), store.ErrNotFound, "Replace")
	}
	e.ids(e.claimKeys(at(time.Hour), m.Key()))
}

func followUpTracePurged(e *env) {
	e.fresh()
	q := e.name()
	var last store.Message
	for _, id := range []string{"a", "b", "c"} {
		last = e.trace(q, id, store.OutcomeDone)
	}
	equal(e, "purged a millisecond before", e.purge(at(store.TraceTTL-time.Millisecond), 10), 0)
	equal(e, "purged with a limit of two", e.purge(at(store.TraceTTL), 2), 2)
	equal(e, "purged after that", e.purge(at(store.TraceTTL), 2), 1)
	if v := e.put(start, e.message(q, last.ID, start))[0]; v <= last.Version {
		e.fail("the id is used again and its version went from %d to %d", last.Version, v)
	}
}

// purge removes what is finished and over.
func (e *env) purge(now time.Time, limit int) int {
	e.Helper()
	n, err := e.s.Purge(e.Context(), now, limit)
	e.is(err, nil, "Purge")
	return n
}
