package storetest

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/belfryhq/belfry/store"
)

func orderLaws() []Law {
	return []Law{
		{"order/exact", "due messages of a queue are claimed in the order of priority, VisibleAt and id, at any backlog", orderExact},
		{"order/priorities", "hundreds of priorities are claimed in their order, those with nothing due skipped", orderPriorities},
		{"order/kept", "the order goes by VisibleAt as it is now: after a retry, a change and a lease that ran out too", orderKept},
	}
}

// place is what decides when a message is claimed; a million of them fit where as many messages would not.
type place struct {
	id       string
	priority int32
	visible  time.Time
}

// lineUp puts a message at each place.
func (e *env) lineUp(q string, places []place) {
	e.Helper()
	for batch := range slices.Chunk(places, 1000) {
		ms := make([]store.Message, len(batch))
		for i, p := range batch {
			ms[i] = e.message(q, p.id, p.visible)
			ms[i].Priority = p.priority
		}
		e.put(at(-time.Hour), ms...)
	}
}

// byClaim sorts places as messages are claimed.
func byClaim(places []place) {
	slices.SortFunc(places, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.priority, b.priority), a.visible.Compare(b.visible), cmp.Compare(a.id, b.id))
	})
}

// drain claims from the queue, in claims of the sizes in turn, until all of want has come, in its order, and nothing else.
func (e *env) drain(now time.Time, q string, want []place, sizes ...int) {
	e.Helper()
	for i, got := 0, 0; ; i++ {
		ms := e.claim(now, q, sizes[i%len(sizes)])
		for _, m := range ms {
			if got == len(want) {
				e.fail("%q came after all %d that are due", m.ID, got)
			}
			if w := want[got]; m.ID != w.id {
				e.fail("message %d is %q (priority %d), want %q (priority %d, %s)", got, m.ID, m.Priority, w.id, w.priority, brief(w.visible))
			}
			got++
		}
		if len(ms) == 0 {
			equal(e, "messages claimed", got, len(want))
			return
		}
	}
}

func orderExact(e *env) {
	q, n := e.name(), e.scale.pick(2000, 20_000, 1_000_000)
	r := rand.New(rand.NewPCG(1, 2))
	places := make([]place, n)
	for i := range places {
		places[i] = place{
			id:       fmt.Sprintf("m%07d", (i*7919)%n),
			priority: []int32{math.MinInt32, -1, 0, 0, 0, 1, math.MaxInt32}[r.IntN(7)],
			visible:  at(-time.Duration(r.IntN(n/4)) * time.Millisecond),
		}
	}
	e.lineUp(q, places)
	e.put(start, e.message(q, "to come", at(time.Millisecond)))
	byClaim(places)
	half := n / 2
	for i := 0; i < half; i += 500 {
		for j, m := range e.claim(start, q, min(500, half-i)) {
			if m.ID != places[i+j].id {
				e.fail("message %d is %q, want %q", i+j, m.ID, places[i+j].id)
			}
		}
	}
	late := place{"put last, due first", math.MinInt32, at(-24 * time.Hour)}
	e.lineUp(q, []place{late})
	e.drain(start, q, append([]place{late}, places[half:]...), 1, 7, 60, 400)
}

func orderPriorities(e *env) {
	q := e.name()
	r := rand.New(rand.NewPCG(3, 4))
	var due, waiting []place
	for i := range int32(e.scale.pick(200, 400, 1000)) {
		for j := range 3 {
			p := place{fmt.Sprintf("%d.%d", i, j), (i - 150) * 1000, at(-time.Duration(r.IntN(5)) * time.Millisecond)}
			if i%4 == 0 { // nothing of this priority is due
				p.visible = at(time.Hour)
				waiting = append(waiting, p)
			} else {
				due = append(due, p)
			}
		}
	}
	r.Shuffle(len(due), func(i, j int) { due[i], due[j] = due[j], due[i] })
	e.lineUp(q, due)
	e.lineUp(q, waiting)
	byClaim(due)
	e.drain(start, q, due, 10, 1, 50)
	e.step("those that waited")
	for i := range due { // their leases ran out together
		due[i].visible = at(lease)
	}
	all := append(due, waiting...)
	byClaim(all)
	e.drain(at(time.Hour), q, all, 100)
}

func orderKept(e *env) {
	q := e.name()
	e.put(start, e.messages(q, 5, start)...)
	held := e.claimAs(store.Claim{Now: start, Until: at(30 * time.Millisecond), Queues: []store.QueueClaim{{Queue: q, Limit: 3}}}).Messages
	e.ids(held, "m0000000", "m0000001", "m0000002")
	e.settle(start, store.Settlement{Token: held[0].Token(), Outcome: store.OutcomeRetry, At: at(20 * time.Millisecond)})
	equal(e, "Extend", e.extend(start, held[1].Token(), at(10*time.Millisecond)), store.Extended)
	m := e.get(store.Key{Queue: q, ID: "m0000003"})
	m.DueAt = at(40 * time.Millisecond)
	e.replace(start, m)
	m = e.get(store.Key{Queue: q, ID: "m0000004"})
	m.Priority = 1
	e.replace(start, m)
	e.ids(e.claim(at(time.Second), q, 10), "m0000001", "m0000000", "m0000002", "m0000003", "m0000004")
}
