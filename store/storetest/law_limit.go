package storetest

import (
	"time"

	"github.com/belfryhq/belfry/store"
)

func limitLaws() []Law {
	return []Law{
		{"limit/concurrency", "a queue's Concurrency bounds its live leases over all claimers; those that ran out do not count", limitConcurrency},
		{"limit/rate", "a queue's Rate bounds its claims over all claimers, and FreeAt tells when the next is allowed", limitRate},
		{"stop/ask", "Extend without an end only asks: it tells the same and moves nothing", stopAsk},
	}
}

func limitConcurrency(e *env) {
	q := e.name()
	e.put(start, e.messages(q, 10, start)...)
	claim := func(now time.Time, limit int) store.Claimed {
		return e.claimAs(store.Claim{Now: now, Queues: []store.QueueClaim{{Queue: q, Limit: limit, Concurrency: 3}}})
	}
	first := claim(start, 2)
	equal(e, "claimed first", len(first.Messages), 2)
	second := claim(start, 10)
	equal(e, "claimed second", len(second.Messages), 1)
	if !second.Queues[0].Limited {
		e.fail("the claim does not tell that it was limited")
	}
	equal(e, "claimed when all places are taken", len(claim(start, 10).Messages), 0)
	e.settle(start, store.Settlement{Token: first.Messages[0].Token(), Outcome: store.OutcomeDone, PurgeAt: start})
	equal(e, "claimed when one is free", len(claim(start, 10).Messages), 1)
	equal(e, "claimed when all leases have run out", len(claim(at(2*lease), 10).Messages), 3)
}

func limitRate(e *env) {
	q := e.name()
	e.put(start, e.messages(q, 10, start)...)
	claim := func(now time.Time) store.Claimed {
		return e.claimAs(store.Claim{Now: now, Queues: []store.QueueClaim{
			{Queue: q, Limit: 10, Rate: store.Rate{Every: time.Second, Burst: 2}},
		}})
	}
	first := claim(start)
	equal(e, "claimed at once", len(first.Messages), 2)
	if !first.Queues[0].Limited {
		e.fail("the claim does not tell that it was limited")
	}
	e.instant("FreeAt", first.Queues[0].FreeAt, at(time.Second))
	equal(e, "claimed too early", len(claim(at(999*time.Millisecond)).Messages), 0)
	equal(e, "claimed a second later", len(claim(at(time.Second)).Messages), 1)
	equal(e, "claimed after a long rest", len(claim(at(20*time.Second)).Messages), 2)
}

func stopAsk(e *env) {
	q := e.name()
	m := e.hold(start, e.message(q, "m", start))
	equal(e, "asked of a live lease", e.extend(at(time.Second), m.Token(), time.Time{}), store.Extended)
	e.same(e.get(m.Key()), m)
	e.is(e.tryReplace(at(time.Second), store.Mark, m), nil, "Mark")
	equal(e, "asked of a marked lease", e.extend(at(time.Second), m.Token(), time.Time{}), store.Stopping)
	equal(e, "asked of a lease that ran out", e.extend(at(lease), m.Token(), time.Time{}), store.Lost)
	e.instant("the lease's end", e.get(m.Key()).VisibleAt, at(lease))
}
