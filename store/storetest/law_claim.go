package storetest

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/belfryhq/belfry/store"
)

func claimLaws() []Law {
	return []Law{
		{"claim/lease", "a claim leases a message to its owner until the lease's end and counts", claimLease},
		{"claim/early", "no message is claimed before its VisibleAt, not by a fraction of a millisecond", claimEarly},
		{"claim/limits", "a claim takes at most the limit of each queue, in the order of its queues", claimLimits},
		{"claim/queues", "one claim serves thousands of queues", claimQueues},
		{"claim/ahead", "slots left take what is visible within Ahead, in the order of VisibleAt and id", claimAhead},
		{"claim/due-first", "nothing ahead fills a slot while something due waits in the queue", claimDueFirst},
		{"claim/ahead-leased", "Ahead never takes what is under a live lease", claimAheadLeased},
		{"claim/keys", "messages are claimed by address in any queue, whatever their order, beside the limits", claimKeys},
		{"claim/keys-skipped", "a claim by address skips what is missing, leased, not due or finished", claimKeysSkipped},
		{"claim/next", "Next is never later than the instant at which something is visible, and Never where nothing is", claimNext},
		{"claim/exclusive", "each message goes to one of all who claim at once", claimExclusive},
		{"claim/run-out", "a message whose lease ran out is claimed again; its claim stays counted, no attempt is", claimRunOut},
		{"claim/clock-back", "a clock that goes backwards makes nothing early, loses nothing, and versions still grow", claimClockBack},
	}
}

func claimLease(e *env) {
	m := full(e.name(), "m", store.Scheduled, 1)
	e.put(start, m)
	want := e.get(m.Key())
	now := at(time.Hour)
	got := only(e, e.claimAs(store.Claim{
		Now: now.Add(999 * time.Microsecond), Until: now.Add(lease), Owner: "me", Epoch: 7,
		Queues: []store.QueueClaim{{Queue: m.Queue, Limit: 1}},
	}).Messages)
	if got.Version <= want.Version {
		e.fail("the version went from %d to %d", want.Version, got.Version)
	}
	want.State, want.Claims, want.Version = store.Leased, want.Claims+1, got.Version
	want.Owner, want.Epoch, want.VisibleAt, want.UpdatedAt = "me", 7, now.Add(lease), now
	e.same(got, want, "History")
	e.same(e.get(m.Key()), want)
	e.ids(e.claim(now, m.Queue, 10))
	e.ids(e.claim(now.Add(lease-time.Millisecond), m.Queue, 10))
}

func claimEarly(e *env) {
	q := e.name()
	due := at(10 * time.Millisecond)
	retried, released := e.hold(start, e.message(q, "retried", start)), e.hold(start, e.message(q, "released", start))
	e.settle(start,
		store.Settlement{Token: retried.Token(), Outcome: store.OutcomeRetry, At: due},
		store.Settlement{Token: released.Token(), Outcome: store.OutcomeRelease, At: due})
	moved := e.message(q, "moved", start)
	moved.Version = e.put(start, moved)[0]
	moved.State, moved.DueAt = store.Scheduled, due
	e.replace(start, moved)
	e.put(start, e.message(q, "leased", start))
	e.claimAs(store.Claim{Now: start, Until: due, Keys: []store.Key{{Queue: q, ID: "leased"}}})
	e.put(start, e.message(q, "new", due))
	ids := []string{"leased", "moved", "new", "released", "retried"}
	for _, before := range []time.Duration{time.Millisecond, 1} {
		now := due.Add(-before)
		e.step("%s before", before)
		e.ids(e.claim(now, q, 10))
		for _, id := range ids {
			e.ids(e.claimKeys(now, store.Key{Queue: q, ID: id}))
		}
	}
	e.step("at the instant")
	e.ids(e.claim(due, q, 10), ids...)
}

func claimLimits(e *env) {
	q1, q2, q3 := e.name(), e.name(), e.name()
	for _, q := range []string{q1, q2, q3} {
		e.put(start, e.messages(q, 5, start)...)
	}
	got := e.claimAs(store.Claim{Now: start, Queues: []store.QueueClaim{{Queue: q2, Limit: 3}, {Queue: q3}, {Queue: e.name(), Limit: 9}, {Queue: q1, Limit: 1}}})
	var of []string
	for _, m := range got.Messages {
		of = append(of, m.Queue+m.ID)
	}
	want := []string{q2 + "m0000000", q2 + "m0000001", q2 + "m0000002", q1 + "m0000000"}
	if !slices.Equal(of, want) {
		e.fail("got %s, want %s", brief(of), brief(want))
	}
	for i, next := range got.Queues {
		equal(e, "Limited where only Limit bounds", next.Limited, false)
		if i != 2 && next.Next.After(start) {
			e.fail("due messages are left in queue %d, but Next is %s", i, brief(next.Next))
		}
	}
	e.step("no queues")
	e.ids(e.claimAs(store.Claim{Now: start}).Messages)
	e.step("the rest")
	e.ids(e.claim(start, q2, 100), "m0000003", "m0000004")
	equal(e, "messages left in the other", len(e.claim(start, q3, 100)), 5)
}

func claimQueues(e *env) {
	n := e.scale.pick(100, 1000, 10_000)
	prefix, limits := e.name(), make([]store.QueueClaim, n)
	var ms []store.Message
	for i := range n {
		limits[i] = store.QueueClaim{Queue: fmt.Sprintf("%s %05d", prefix, (i*7919)%n), Limit: 1}
		ms = append(ms, e.message(limits[i].Queue, "second", start), e.message(limits[i].Queue, "first", at(-time.Millisecond)))
	}
	e.put(start, ms...)
	for _, id := range []string{"first", "second"} {
		e.step("%s", id)
		got := e.claimAs(store.Claim{Now: start, Queues: limits}).Messages
		equal(e, "messages", len(got), n)
		for i, m := range got {
			if m.Queue != limits[i].Queue || m.ID != id {
				e.fail("message %d is %q of %q, want %q of %q", i, m.ID, m.Queue, id, limits[i].Queue)
			}
		}
	}
}

// due puts a message into the queue that is visible at the instant, with the priority.
func (e *env) due(q, id string, t time.Time, priority int32) {
	e.Helper()
	m := e.message(q, id, t)
	m.Priority = priority
	e.put(start, m)
}

func claimAhead(e *env) {
	q := e.name()
	const ahead = 100 * time.Millisecond
	e.due(q, "due", start, 9)
	e.due(q, "last", at(ahead), 1)
	e.due(q, "beyond", at(ahead+time.Millisecond), 0)
	e.due(q, "early", at(50*time.Millisecond), 5)
	e.due(q, "early2", at(50*time.Millisecond), 5)
	e.due(q, "middle", at(70*time.Millisecond), 2)
	claim := func(limit int) []store.Message {
		return e.claimAs(store.Claim{Now: start.Add(999_999), Ahead: ahead, Queues: []store.QueueClaim{{Queue: q, Limit: limit}}}).Messages
	}
	e.step("three slots")
	got := claim(3)
	e.ids(got, "due", "early", "early2")
	early := e.get(got[1].Key())
	e.same(early, got[1])
	e.instant("DueAt", early.DueAt, at(50*time.Millisecond))
	e.instant("VisibleAt", early.VisibleAt, at(lease))
	e.step("slots for all")
	e.ids(claim(10), "middle", "last")
	e.step("again")
	e.ids(claim(10))
}

func claimDueFirst(e *env) {
	q := e.name()
	e.due(q, "ahead1", at(10*time.Millisecond), -9)
	e.due(q, "ahead2", at(20*time.Millisecond), -8)
	for i := range 5 {
		e.due(q, fmt.Sprint("due", i), start, int32(i))
	}
	var got []store.Message
	for range 4 {
		c := e.claimAs(store.Claim{Now: start, Ahead: time.Second, Queues: []store.QueueClaim{{Queue: q, Limit: 2}}})
		got = append(got, c.Messages...)
	}
	e.ids(got, "due0", "due1", "due2", "due3", "due4", "ahead1", "ahead2")
}

func claimAheadLeased(e *env) {
	q := e.name()
	e.put(start, e.message(q, "leased", start), e.message(q, "retried", start), e.message(q, "run out", start))
	claim := func(now, until time.Time, id string) store.Message {
		return only(e, e.claimAs(store.Claim{Now: now, Until: until, Keys: []store.Key{{Queue: q, ID: id}}}).Messages)
	}
	claim(start, at(10*time.Second), "run out")
	claim(start, at(10*time.Second+50*time.Millisecond), "leased")
	e.settle(start, store.Settlement{
		Token: ptr(claim(start, at(time.Second), "retried")).Token(), Outcome: store.OutcomeRetry, At: at(10*time.Second + 20*time.Millisecond),
	})
	e.ids(e.claimAs(store.Claim{
		Now: at(10 * time.Second), Ahead: 100 * time.Millisecond, Queues: []store.QueueClaim{{Queue: q, Limit: 10}},
	}).Messages, "run out", "retried")
}

func claimKeys(e *env) {
	q1, q2 := e.name(), e.name()
	e.put(start, e.messages(q1, 6, start)...)
	e.put(start, e.messages(q2, 3, start)...)
	c := e.claimAs(store.Claim{
		Now:    start,
		Keys:   []store.Key{{Queue: q1, ID: "m0000005"}, {Queue: q2, ID: "m0000001"}, {Queue: q1, ID: "m0000000"}, {Queue: q1, ID: "m0000005"}},
		Queues: []store.QueueClaim{{Queue: q1, Limit: 2}},
	})
	if len(c.Messages) != 5 {
		e.fail("three addresses and a limit of two gave %d messages", len(c.Messages))
	}
	byKey := c.Messages[:3]
	slices.SortFunc(byKey, func(a, b store.Message) int { return int(a.ID[7]) - int(b.ID[7]) })
	e.ids(byKey, "m0000000", "m0000001", "m0000005")
	e.ids(c.Messages[3:], "m0000001", "m0000002")
	for _, m := range c.Messages {
		e.same(e.get(m.Key()), m)
	}
}

func claimKeysSkipped(e *env) {
	q := e.name()
	ms := e.holders(q, func(*store.Message) {})
	gated := e.message(q, "gated", start)
	gated.Gate = &store.Gate{IDs: []string{"scheduled"}}
	e.put(start, gated, e.message(q, "later", at(time.Millisecond)))
	keys := []store.Key{{Queue: q, ID: "missing"}, {Queue: q, ID: "later"}, gated.Key(), {Queue: e.name(), ID: "scheduled"}}
	for _, m := range ms {
		keys = append(keys, m.Key())
	}
	e.ids(e.claimAs(store.Claim{Now: start, Ahead: time.Second, Keys: keys}).Messages, "scheduled")
}

func claimNext(e *env) {
	q := e.name()
	check := func(what string, now time.Time, limit int, want time.Time) {
		e.Helper()
		e.step("%s", what)
		next := e.claimAs(store.Claim{Now: now, Queues: []store.QueueClaim{{Queue: q, Limit: limit}}}).Queues[0]
		if next.Next.After(want) || want.Equal(store.Never) && !next.Next.Equal(store.Never) {
			e.fail("Next is %s, want %s", brief(next.Next), brief(want))
		}
		equal(e, "Limited", next.Limited, false)
	}
	check("nothing was ever put", start, 1, store.Never)
	e.due(q, "late", at(time.Hour), 0)
	e.due(q, "later", at(2*time.Hour), -5)
	check("a message to come", start, 1, at(time.Hour))
	check("a message left for lack of slots", at(time.Hour), 0, at(time.Hour))
	check("a lease", at(time.Hour), 9, at(time.Hour+lease))
	held := e.get(store.Key{Queue: q, ID: "late"})
	equal(e, "Extend", e.extend(at(time.Hour), held.Token(), at(time.Hour+time.Second)), store.Extended)
	check("a lease cut short", at(time.Hour), 9, at(time.Hour+time.Second))
	e.settle(at(time.Hour), store.Settlement{Token: held.Token(), Outcome: store.OutcomeRetry, At: at(90 * time.Minute)})
	check("a retry", at(time.Hour), 9, at(90*time.Minute))
	held = only(e, e.claim(at(90*time.Minute), q, 1))
	e.settle(at(90*time.Minute), store.Settlement{Token: held.Token(), Outcome: store.OutcomeDone})
	check("the next one", at(90*time.Minute), 9, at(2*time.Hour))
	held = only(e, e.claim(at(2*time.Hour), q, 1))
	e.settle(at(2*time.Hour), store.Settlement{Token: held.Token(), Outcome: store.OutcomeDone, PurgeAt: store.Never})
	check("all are finished", at(2*time.Hour), 9, store.Never)
}

func claimExclusive(e *env) {
	q, n := e.name(), e.scale.pick(400, 2000, 50_000)
	e.put(start, e.messages(q, n, start)...)
	var lock sync.Mutex
	seen := map[string]int{}
	note := func(ms []store.Message) {
		lock.Lock()
		defer lock.Unlock()
		for _, m := range ms {
			seen[m.ID]++
		}
	}
	e.together(32, func(i int) error {
		for {
			got, err := e.s.Claim(e.Context(), store.Claim{
				Now: start, Until: at(lease), Owner: fmt.Sprint(i), Epoch: 1, Queues: []store.QueueClaim{{Queue: q, Limit: 5}},
			})
			if err != nil || len(got.Messages) == 0 {
				return err
			}
			note(got.Messages)
		}
	})
	for { // a claimer may have found all that was left in another's hands
		rest := e.claim(start, q, 1000)
		if note(rest); len(rest) == 0 {
			break
		}
	}
	equal(e, "messages claimed", len(seen), n)
	for id, times := range seen {
		if times != 1 {
			e.fail("%q was claimed %d times", id, times)
		}
	}
}

func claimRunOut(e *env) {
	q := e.name()
	first := e.hold(start, e.message(q, "m", start))
	e.ids(e.claim(at(lease-time.Millisecond), q, 1))
	second := only(e, e.claim(at(lease), q, 1))
	equal(e, "Claims", second.Claims, 2)
	equal(e, "Attempts", second.Attempts, 0)
	if second.Version <= first.Version {
		e.fail("the version went from %d to %d", first.Version, second.Version)
	}
	e.stale(at(lease), first.Token())
	e.same(e.get(second.Key()), second)
}

func claimClockBack(e *env) {
	q := e.name()
	m := e.hold(start, e.message(q, "m", start))
	before := at(-time.Hour)
	version := m.Version
	grew := func(what string) {
		e.Helper()
		e.step("%s", what)
		got := e.get(m.Key())
		if got.Version <= version {
			e.fail("the version went from %d to %d", version, got.Version)
		}
		e.instant("UpdatedAt", got.UpdatedAt, before)
		m, version = got, got.Version
	}
	e.settle(before, store.Settlement{Token: m.Token(), Outcome: store.OutcomeRetry, At: start})
	grew("Settle")
	e.ids(e.claim(before, q, 1))
	m.DueAt = before
	e.replace(before, m)
	grew("Replace")
	e.ids(e.claimAs(store.Claim{Now: before, Until: start, Queues: []store.QueueClaim{{Queue: q, Limit: 1}}}).Messages, "m")
	grew("Claim")
	before = before.Add(-time.Hour)
	e.step("under a lease whose beginning is to come")
	e.ids(e.claim(before, q, 1))
	e.is(e.tryPut(before, store.Overwrite, e.message(q, "m", before))[0].Err, store.ErrInFlight, "Overwrite")
	change := m
	change.State = store.Scheduled
	e.is(e.tryReplace(before, store.Swap, change), store.ErrInFlight, "Replace")
	equal(e, "Extend", e.extend(before, m.Token(), before.Add(lease)), store.Extended)
	before = before.Add(lease)
	equal(e, "messages claimed", len(e.claim(before, q, 1)), 1)
	grew("Claim of what ran out")
	before = before.Add(-time.Minute)
	e.settle(before, store.Settlement{Token: m.Token(), Outcome: store.OutcomeDone, PurgeAt: store.Never})
	grew("Settle as done")
	equal(e, "messages", e.total(store.Query{Queue: q}), 1)
}
