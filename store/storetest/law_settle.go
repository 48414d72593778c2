package storetest

import (
	"fmt"
	"time"

	"github.com/belfryhq/belfry/store"
)

func settleLaws() []Law {
	return []Law{
		{"settle/retry", "a retried message is scheduled at At, its claim and its attempt counted", settleRetry},
		{"settle/release", "a released message is scheduled at At and its claim is uncounted", settleRelease},
		{"settle/kept", "a finished message is kept until PurgeAt and is never claimed again", settleKept},
		{"settle/removed", "a message that is finished with its PurgeAt past is gone", settleRemoved},
		{"settle/attempt", "Attempt is appended to the history and counted; without one neither changes", settleAttempt},
		{"settle/history", "the history keeps the last attempts, oldest first, at most MaxHistory", settleHistory},
		{"settle/error", "Error becomes LastError, whatever the outcome", settleError},
		{"settle/content", "Content replaces what a change may replace, and what the settlement sets itself stays", settleContent},
		{"settle/content-dedup", "a dedup key that Content gives up is free, and the one it takes is held", settleContentDedup},
		{"settle/each", "each settlement of a batch stands for itself", settleEach},
	}
}

// outcomes are all outcomes; the first three finish the message.
var outcomes = []store.Outcome{store.OutcomeDone, store.OutcomeBury, store.OutcomeCancel, store.OutcomeRetry, store.OutcomeRelease}

// settledFields are what a settlement sets, besides the history.
var settledFields = append([]string{"State", "DueAt", "LastError", "FinishedAt", "PurgeAt", "Claims", "Attempts"}, owned...)

// settled returns what the message, as it was read under its lease, is after the settlement.
func settled(m store.Message, now time.Time, s store.Settlement) store.Message {
	if c := s.Content; c != nil {
		was := m
		m = *c
		m.Queue, m.ID, m.CreatedAt, m.History, m.Claims = was.Queue, was.ID, was.CreatedAt, was.History, was.Claims
		m.DueAt, m.Gate = was.DueAt, nil
	}
	m.State, m.LastError, m.UpdatedAt = s.Outcome.State(), s.Error, now
	m.FinishedAt, m.PurgeAt, m.VisibleAt = time.Time{}, time.Time{}, time.Time{}
	m.Owner, m.Epoch, m.Stop, m.Waits = "", 0, false, 0
	if m.State.Finished() {
		m.FinishedAt, m.PurgeAt = now, s.PurgeAt
	} else {
		m.DueAt, m.VisibleAt = s.At, s.At
	}
	if s.Outcome == store.OutcomeRelease {
		m.Claims--
	}
	if s.Attempt != nil {
		m.Attempts++
		m.History = append(m.History[:len(m.History):len(m.History)], *s.Attempt)
	}
	return m
}

// settles leases a message that has every field, settles it and fails unless all is as it should be then. It returns it.
func (e *env) settles(now time.Time, seed int, s store.Settlement) store.Message {
	e.Helper()
	m := full(e.name(), "m", store.Scheduled, seed)
	m.FireAt, m.DueAt = start, start
	e.hold(start, m)
	before := e.get(m.Key())
	s.Token = before.Token()
	e.settle(now, s)
	got := e.get(m.Key())
	e.same(got, settled(before, store.Floor(now), s), "Version")
	if got.Version <= before.Version {
		e.fail("the version went from %d to %d", before.Version, got.Version)
	}
	return got
}

func settleRetry(e *env) {
	due := at(time.Minute)
	got := e.settles(at(time.Second+999), 1, store.Settlement{
		Outcome: store.OutcomeRetry, At: due, Error: "no answer", Attempt: &store.Attempt{Number: 1, StartedAt: start, Error: "no answer"},
	})
	equal(e, "Claims", got.Claims, full("", "", store.Scheduled, 1).Claims+1)
	e.ids(e.claim(due.Add(-time.Millisecond), got.Queue, 1))
	e.ids(e.claim(due, got.Queue, 1), "m")
	e.step("into the past")
	got = e.settles(at(time.Second), 2, store.Settlement{Outcome: store.OutcomeRetry, At: at(-time.Hour)})
	e.ids(e.claim(at(time.Second), got.Queue, 1), "m")
}

func settleRelease(e *env) {
	due := at(time.Minute)
	got := e.settles(at(time.Second), 1, store.Settlement{Outcome: store.OutcomeRelease, At: due, Error: "given back"})
	equal(e, "Claims", got.Claims, full("", "", store.Scheduled, 1).Claims)
	e.ids(e.claim(due.Add(-time.Millisecond), got.Queue, 1))
	e.ids(e.claim(due, got.Queue, 1), "m")
	e.step("with an attempt")
	e.settles(at(time.Second), 2, store.Settlement{Outcome: store.OutcomeRelease, At: due, Attempt: &store.Attempt{Number: 1}})
}

func settleKept(e *env) {
	for i, o := range outcomes[:3] {
		for j, purge := range []time.Time{at(time.Second + time.Millisecond), at(time.Hour), store.Never} {
			e.step("%s, kept until %s", o.State(), brief(purge))
			got := e.settles(at(time.Second), 3*i+j, store.Settlement{Outcome: o, PurgeAt: purge, Attempt: &store.Attempt{Number: 1, Status: 200}})
			e.ids(e.claim(at(24*time.Hour), got.Queue, 1))
			e.ids(e.claimKeys(at(24*time.Hour), got.Key()))
			e.same(only(e, e.list(store.Query{Queue: got.Queue, States: []store.State{o.State()}, Payloads: true}).Messages), got, "History")
		}
	}
}

func settleRemoved(e *env) {
	q := e.name()
	for _, o := range outcomes[:3] {
		for _, purge := range []time.Time{{}, at(-time.Hour), at(time.Second)} {
			e.step("%s, kept until %s", o.State(), brief(purge))
			m := e.hold(start, e.message(q, "m", start))
			e.settle(at(time.Second), store.Settlement{Token: m.Token(), Outcome: o, PurgeAt: purge, Attempt: &store.Attempt{Number: 1}})
			e.absent(m.Key())
			equal(e, "messages counted", e.total(store.Query{Queue: q}), 0)
			e.ids(e.claim(at(24*time.Hour), q, 1))
			e.put(start, e.message(q, "m", start)) // the id is free
			e.settle(start, store.Settlement{Token: ptr(only(e, e.claim(start, q, 1))).Token(), Outcome: o})
		}
	}
}

func settleAttempt(e *env) {
	attempt := full("", "", store.Done, 7).History[1]
	for i, o := range outcomes {
		for j, a := range []*store.Attempt{nil, &attempt, {Number: 1}} {
			e.step("%s, attempt %d", o.State(), j)
			got := e.settles(at(time.Second), 3*i+j, store.Settlement{Outcome: o, At: at(time.Hour), PurgeAt: store.Never, Attempt: a})
			equal(e, "attempts kept", len(got.History), 3+btoi(a != nil))
		}
	}
}

func settleHistory(e *env) {
	m := e.message(e.name(), "m", start)
	m.History = []store.Attempt{{Number: -1}, {Number: 0}}
	e.put(start, m)
	const n = store.MaxHistory + 3
	for i := 1; i <= n; i++ {
		s := store.Settlement{
			Token: ptr(only(e, e.claim(start, m.Queue, 1))).Token(), Outcome: store.OutcomeRetry, At: start, PurgeAt: store.Never,
			Attempt: &store.Attempt{Number: i, Error: fmt.Sprint("error ", i), StartedAt: at(time.Duration(i) * time.Second)},
		}
		if i == n {
			s.Outcome = store.OutcomeBury
		}
		e.settle(start, s)
	}
	got := e.get(m.Key())
	equal(e, "Attempts", got.Attempts, n)
	equal(e, "attempts kept", len(got.History), store.MaxHistory)
	for i, a := range got.History {
		equal(e, "Number", a.Number, n-store.MaxHistory+1+i)
		equal(e, "Error", a.Error, fmt.Sprint("error ", a.Number))
	}
}

func settleError(e *env) {
	for i, o := range outcomes {
		for j, text := range []string{"", "Grüße \x01 'quoted'"} {
			e.step("%s, error %q", o.State(), text)
			got := e.settles(at(time.Second), 2*i+j, store.Settlement{Outcome: o, At: at(time.Hour), PurgeAt: store.Never, Error: text})
			equal(e, "LastError", got.LastError, text)
		}
	}
}

func settleContent(e *env) {
	for i, o := range outcomes {
		e.step("%s", o.State())
		content := full("elsewhere", "other", store.Dead, 20+i)
		content.Version, content.Gate = 1, &store.Gate{IDs: []string{"m"}}
		got := e.settles(at(time.Second), i, store.Settlement{
			Outcome: o, At: at(time.Hour), PurgeAt: store.Never, Error: "e", Attempt: &store.Attempt{Number: 4}, Content: &content,
		})
		equal(e, "Attempts", got.Attempts, content.Attempts+1)
		e.step("%s, claimed by its new priority", o.State())
		if got.State.Live() {
			first := e.message(got.Queue, "first", at(time.Hour))
			first.Priority = content.Priority - 1
			e.put(start, first)
			e.ids(e.claim(at(time.Hour), got.Queue, 2), "first", "m")
		}
	}
	e.step("without an attempt")
	content := full("", "", store.Scheduled, 40)
	got := e.settles(at(time.Second), 41, store.Settlement{Outcome: store.OutcomeRetry, At: at(time.Hour), Content: &content})
	equal(e, "Attempts", got.Attempts, content.Attempts)
}

func settleContentDedup(e *env) {
	q := e.name()
	m := e.message(q, "m", start)
	m.DedupKey = "old"
	held := e.hold(start, m)
	content := held
	content.DedupKey = "new"
	e.settle(start, store.Settlement{Token: held.Token(), Outcome: store.OutcomeRetry, At: start, Content: &content})
	for key, want := range map[string]error{"old": nil, "new": store.ErrDuplicate} {
		other := e.message(q, key, start)
		other.DedupKey = key
		e.is(e.tryPut(start, 0, other)[0].Err, want, "Put with the "+key+" key")
	}
}

func settleEach(e *env) {
	q := e.name()
	e.put(start, e.messages(q, 4, start)...)
	ms := e.claim(start, q, 4)
	equal(e, "messages claimed", len(ms), 4)
	stale := ms[1].Token()
	stale.Version++
	errs := e.trySettle(start,
		store.Settlement{Token: ms[3].Token(), Outcome: store.OutcomeDone, PurgeAt: store.Never},
		store.Settlement{Token: stale, Outcome: store.OutcomeDone},
		store.Settlement{Token: ms[0].Token(), Outcome: store.OutcomeRetry, At: at(time.Hour)},
		store.Settlement{Token: store.Token{Queue: q, ID: "missing"}, Outcome: store.OutcomeDone},
		store.Settlement{Token: ms[2].Token(), Outcome: store.OutcomeDone},
	)
	for i, want := range []error{nil, store.ErrLeaseLost, nil, store.ErrLeaseLost, nil} {
		e.step("settlement %d", i)
		e.is(errs[i], want, "Settle")
	}
	equal(e, "State", e.get(ms[3].Key()).State, store.Done)
	equal(e, "State", e.get(ms[0].Key()).State, store.Scheduled)
	e.same(e.get(ms[1].Key()), ms[1])
	e.absent(ms[2].Key())
}
