package storetest

import (
	"errors"
	"time"

	"github.com/belfryhq/belfry/store"
)

func leaseLaws() []Law {
	return []Law{
		{"lease/stale", "a stale token changes nothing", leaseStale},
		{"lease/twice", "a lease is settled once", leaseTwice},
		{"lease/run-out", "a token stays current after its lease ran out until somebody else takes the message", leaseRunOut},
		{"extend/held", "Extend moves the end of a live lease and changes nothing else", extendHeld},
		{"extend/lost", "Extend tells of a lease that is over that it is lost, and changes nothing", extendLost},
		{"stop/mark", "a stop mark is told by Extend, changes nothing else, and the next claim clears it", stopMark},
		{"stop/refused", "a stop mark needs a live lease", stopRefused},
		{"stop/revoke", "Revoke changes a leased message and makes its token stale", stopRevoke},
		{"forfeit/earlier", "Forfeit ends the leases of that owner's earlier incarnations and no others", forfeitEarlier},
		{"forfeit/back", "a forfeited message comes back at its DueAt with its claim counted and its token stale", forfeitBack},
	}
}

// stale fails unless settling and extending with the token are refused and change nothing.
func (e *env) stale(now time.Time, token store.Token) {
	e.Helper()
	key := store.Key{Queue: token.Queue, ID: token.ID}
	before, errBefore := e.s.Get(e.Context(), key)
	follow := e.message(e.name(), "follow", now)
	content := full(key.Queue, key.ID, store.Scheduled, 8)
	var ss []store.Settlement
	for _, o := range outcomes {
		for _, purge := range []time.Time{{}, store.Never} {
			follow.Parent = key.ID
			ss = append(ss, store.Settlement{
				Token: token, Outcome: o, At: now, PurgeAt: purge, Error: "late", Attempt: &store.Attempt{Number: 99},
				Content: &content, FollowUps: []store.Message{follow},
			})
		}
	}
	for i, err := range e.trySettle(now, ss...) {
		e.is(err, store.ErrLeaseLost, "Settle as "+ss[i].Outcome.State().String()+" with a stale token")
	}
	equal(e, "Extend with a stale token", e.extend(now, token, now.Add(time.Hour)), store.Lost)
	after, err := e.s.Get(e.Context(), key)
	if (err == nil) != (errBefore == nil) || errors.Is(err, store.ErrNotFound) != errors.Is(errBefore, store.ErrNotFound) {
		e.fail("Get gave %v before a stale settlement and %v after it", errBefore, err)
	}
	e.same(after, before)
	e.absent(follow.Key())
}

func leaseStale(e *env) {
	q, now := e.name(), at(time.Second)
	hold := func(what string) store.Message {
		e.step("%s", what)
		return e.hold(start, e.message(q, what, start))
	}
	m := hold("claimed again")
	e.ids(e.claimKeys(at(lease), m.Key()), m.ID)
	e.stale(at(lease), m.Token())

	for _, o := range []store.Outcome{store.OutcomeDone, store.OutcomeRetry, store.OutcomeRelease} {
		for _, purge := range []time.Time{{}, store.Never} {
			m = hold("settled as " + o.State().String() + e.name())
			e.settle(now, store.Settlement{Token: m.Token(), Outcome: o, At: now, PurgeAt: purge})
			e.stale(now, m.Token())
		}
	}

	m = hold("replaced")
	change := m
	change.State = store.Scheduled
	e.is(e.tryReplace(now, store.Revoke, change), nil, "Revoke")
	e.stale(now, m.Token())

	m = hold("overwritten")
	e.is(e.tryPut(at(lease), store.Overwrite, e.message(q, m.ID, start))[0].Err, nil, "Overwrite")
	e.stale(at(lease), m.Token())

	m = hold("put again")
	e.settle(now, store.Settlement{Token: m.Token(), Outcome: store.OutcomeDone})
	e.hold(start, e.message(q, m.ID, start))
	e.stale(start, m.Token())

	m = hold("another version")
	for _, version := range []int64{0, m.Version - 1, m.Version + 1} {
		e.stale(now, store.Token{Queue: q, ID: m.ID, Version: version})
	}
	e.stale(now, store.Token{Queue: e.name(), ID: m.ID, Version: m.Version})
	e.stale(now, store.Token{Queue: q, ID: "missing", Version: m.Version})

	e.step("never claimed")
	version := e.put(now, e.message(q, "waiting", now))[0]
	e.stale(now, store.Token{Queue: q, ID: "waiting", Version: version})
	finished := e.message(q, "finished", now)
	finished.State, finished.PurgeAt = store.Done, store.Never
	e.stale(now, store.Token{Queue: q, ID: "finished", Version: e.put(now, finished)[0]})
}

func leaseTwice(e *env) {
	q := e.name()
	for _, purge := range []time.Time{{}, store.Never} {
		e.step("in one batch, kept: %t", !purge.IsZero())
		m := e.hold(start, e.message(q, e.name(), start))
		done := store.Settlement{Token: m.Token(), Outcome: store.OutcomeDone, PurgeAt: purge}
		bury := store.Settlement{Token: m.Token(), Outcome: store.OutcomeBury, PurgeAt: purge, Error: "second"}
		errs := e.trySettle(start, done, bury)
		e.is(errs[0], nil, "the first")
		e.is(errs[1], store.ErrLeaseLost, "the second")
		e.step("one after the other, kept: %t", !purge.IsZero())
		e.is(e.trySettle(start, bury)[0], store.ErrLeaseLost, "the third")
		if purge.IsZero() {
			e.absent(m.Key())
		} else {
			equal(e, "State", e.get(m.Key()).State, store.Done)
		}
	}
	e.step("at once")
	m := e.hold(start, e.message(q, e.name(), start))
	results := make([]error, 16)
	e.together(len(results), func(i int) error {
		errs, err := e.s.Settle(e.Context(), start, []store.Settlement{{Token: m.Token(), Outcome: store.OutcomeRetry, At: start, Attempt: &store.Attempt{Number: 1}}})
		if err == nil && len(errs) == 1 {
			results[i] = errs[0]
		}
		return err
	})
	accepted := 0
	for _, err := range results {
		if err == nil {
			accepted++
		}
	}
	equal(e, "settlements accepted", accepted, 1)
	equal(e, "Attempts", e.get(m.Key()).Attempts, 1)
}

func leaseRunOut(e *env) {
	q := e.name()
	now := at(24 * time.Hour)
	for _, o := range outcomes {
		e.step("%s", o.State())
		m := e.hold(start, e.message(q, e.name(), start))
		e.settle(now, store.Settlement{Token: m.Token(), Outcome: o, At: now, PurgeAt: store.Never})
		equal(e, "State", e.get(m.Key()).State, o.State())
	}
}

func extendHeld(e *env) {
	m := e.hold(start, e.message(e.name(), "m", start))
	want := e.get(m.Key())
	for _, d := range []time.Duration{time.Hour, 2 * time.Hour, time.Minute} {
		e.step("until %s", d)
		equal(e, "answer", e.extend(at(time.Second), m.Token(), at(d)), store.Extended)
		want.VisibleAt = at(d)
		e.same(e.get(m.Key()), want)
		e.ids(e.claim(at(d-time.Millisecond), m.Queue, 1))
	}
	e.step("several")
	other := e.hold(start, e.message(m.Queue, "other", start))
	missing := store.Token{Queue: m.Queue, ID: "missing", Version: m.Version}
	held, err := e.s.Extend(e.Context(), at(time.Second), []store.Token{other.Token(), missing, m.Token()}, at(time.Hour))
	e.is(err, nil, "Extend")
	if len(held) != 3 || held[0] != store.Extended || held[1] != store.Lost || held[2] != store.Extended {
		e.fail("a current token, a missing one and a current one gave %v", held)
	}
	e.settle(at(time.Second), store.Settlement{Token: m.Token(), Outcome: store.OutcomeDone})
}

func extendLost(e *env) {
	q := e.name()
	m := e.hold(start, e.message(q, "m", start))
	before := e.get(m.Key())
	for _, now := range []time.Time{at(lease), at(lease + time.Hour)} {
		e.step("run out, at %s", brief(now))
		equal(e, "answer", e.extend(now, m.Token(), now.Add(time.Hour)), store.Lost)
		e.same(e.get(m.Key()), before)
	}
	e.step("a millisecond before its end")
	equal(e, "answer", e.extend(at(lease-1), m.Token(), at(lease)), store.Extended)
	e.step("claimed again")
	e.ids(e.claim(at(lease), q, 1), "m")
	e.stale(at(lease), m.Token())
}

func stopMark(e *env) {
	q := e.name()
	m := e.hold(start, e.message(q, "m", start))
	want := e.get(m.Key())
	change := store.Message{Queue: q, ID: "m", Version: 1, Kind: "ignored"}
	for _, what := range []string{"the first mark", "once more"} {
		e.step("%s", what)
		e.is(e.tryReplace(at(time.Second), store.Mark, change), nil, "Mark")
		want.Stop = true
		e.same(e.get(m.Key()), want)
		equal(e, "Extend", e.extend(at(time.Second), m.Token(), at(lease)), store.Stopping)
	}
	e.step("other leases")
	other := e.hold(start, e.message(q, "other", start))
	equal(e, "Extend", e.extend(at(time.Second), other.Token(), at(lease)), store.Extended)
	e.step("claimed again")
	again := only(e, e.claimKeys(at(lease), m.Key()))
	equal(e, "Stop", again.Stop, false)
	equal(e, "Extend", e.extend(at(lease), again.Token(), at(2*lease)), store.Extended)
	e.step("settled under the mark")
	e.is(e.tryReplace(at(lease), store.Mark, change), nil, "Mark")
	e.settle(at(lease), store.Settlement{Token: again.Token(), Outcome: store.OutcomeRetry, At: at(lease)})
	equal(e, "Stop", e.get(m.Key()).Stop, false)
	equal(e, "Stop", only(e, e.claimKeys(at(lease), m.Key())).Stop, false)
}

func stopRefused(e *env) {
	q := e.name()
	e.is(e.tryReplace(start, store.Mark, e.message(q, "missing", start)), store.ErrNotFound, "Mark of nothing")
	for _, m := range e.holders(q, func(*store.Message) {}) {
		e.step("%s", m.ID)
		before := e.get(m.Key())
		e.is(e.tryReplace(at(lease), store.Mark, before), store.ErrConflict, "Mark without a live lease")
		e.same(e.get(m.Key()), before)
	}
}

func stopRevoke(e *env) {
	q := e.name()
	for _, state := range append(finished, store.Scheduled) {
		e.step("%s", state)
		m := e.hold(start, e.message(q, state.String(), start))
		want := full(q, m.ID, state, int(state))
		want.Version = m.Version - 1
		e.is(e.tryReplace(at(time.Second), store.Revoke, want), store.ErrConflict, "Revoke at another version")
		equal(e, "Extend", e.extend(at(time.Second), m.Token(), at(lease)), store.Extended)
		want.Version = m.Version
		e.is(e.tryReplace(at(time.Second), store.Revoke, want), nil, "Revoke")
		got := e.get(m.Key())
		e.same(got, want, append(owned, "CreatedAt", "History")...)
		equal(e, "Version", got.Version, m.Version+1)
		equal(e, "Owner", got.Owner, "")
		e.stale(at(time.Second), m.Token())
	}
}

func forfeitEarlier(e *env) {
	q, me, other := e.name(), e.name(), e.name()
	hold := func(id, owner string, epoch int64) store.Message {
		e.put(start, e.message(q, id, start))
		return only(e, e.claimAs(store.Claim{Now: start, Owner: owner, Epoch: epoch, Keys: []store.Key{{Queue: q, ID: id}}}).Messages)
	}
	gone := []store.Message{hold("first", me, 1), hold("second", me, 2)}
	kept := []store.Message{hold("current", me, 3), hold("next", me, 4), hold("other", other, 1), hold("suffix", me+"0", 1)}
	settled := hold("settled", me, 1)
	e.settle(start, store.Settlement{Token: settled.Token(), Outcome: store.OutcomeRetry, At: at(time.Hour)})
	retried := e.get(settled.Key())
	forfeit := func(epoch int64) int {
		n, err := e.s.Forfeit(e.Context(), at(time.Second), me, epoch)
		e.is(err, nil, "Forfeit")
		return n
	}
	equal(e, "leases before the first incarnation", forfeit(1), 0)
	equal(e, "leases of earlier incarnations", forfeit(3), 2)
	equal(e, "leases left", forfeit(3), 0)
	for _, m := range kept {
		e.step("%s", m.ID)
		e.same(e.get(m.Key()), m)
		equal(e, "Extend", e.extend(at(time.Second), m.Token(), at(lease)), store.Extended)
	}
	e.same(e.get(settled.Key()), retried)
	for _, m := range gone {
		e.step("%s", m.ID)
		equal(e, "State", e.get(m.Key()).State, store.Scheduled)
	}
}

func forfeitBack(e *env) {
	q, me := e.name(), e.name()
	due := at(50 * time.Millisecond)
	e.put(start, e.message(q, "ahead", due), e.message(q, "due", start))
	held := e.claimAs(store.Claim{Now: start, Owner: me, Epoch: 1, Ahead: time.Second, Queues: []store.QueueClaim{{Queue: q, Limit: 2}}}).Messages
	e.ids(held, "due", "ahead")
	e.is(e.tryReplace(start, store.Mark, held[0]), nil, "Mark")
	n, err := e.s.Forfeit(e.Context(), at(time.Millisecond), me, 2)
	e.is(err, nil, "Forfeit")
	equal(e, "leases", n, 2)
	for _, m := range held {
		e.step("%s", m.ID)
		got, want := e.get(m.Key()), m
		want.State, want.Owner, want.Epoch, want.VisibleAt, want.UpdatedAt = store.Scheduled, "", 0, m.DueAt, at(time.Millisecond)
		e.same(got, want, "Version")
		equal(e, "Claims", got.Claims, 1)
		if got.Version <= m.Version {
			e.fail("the version went from %d to %d", m.Version, got.Version)
		}
		e.stale(at(time.Millisecond), m.Token())
	}
	e.step("claimed again")
	e.ids(e.claim(due.Add(-time.Millisecond), q, 10), "due")
	e.ids(e.claim(due, q, 10), "ahead")
}
