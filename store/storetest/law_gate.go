package storetest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/belfryhq/belfry/store"
)

func gateLaws() []Law {
	return []Law{
		{"gate/members", "a gate waits for those of its ids and its group that are live when it is put", gateMembers},
		{"gate/open", "the end or the removal of the last member opens a gate, whatever the end, at its DueAt", gateOpen},
		{"gate/retry", "a member that is tried again keeps the gate closed", gateRetry},
		{"gate/race", "members that finish at once open a gate exactly once", gateRace},
		{"gate/wake", "a store that carries wake-ups tells of a gate that opens", gateWake},
	}
}

// gated puts a message that waits for ids and a group.
func (e *env) gated(q, id string, due time.Time, gate store.Gate) store.Message {
	e.Helper()
	m := e.message(q, id, due)
	m.Gate = &gate
	e.put(start, m)
	return e.get(m.Key())
}

func gateMembers(e *env) {
	q := e.name()
	for _, id := range []string{"a", "b", "c", "done"} {
		m := e.message(q, id, start)
		if id != "a" {
			m.Group = "g"
		}
		e.put(start, m)
	}
	held := e.claimKeys(start, store.Key{Queue: q, ID: "done"})
	e.settle(start, store.Settlement{Token: held[0].Token(), Outcome: store.OutcomeDone, PurgeAt: store.Never})
	for _, c := range []struct {
		id   string
		gate store.Gate
		want int
	}{
		{"ids", store.Gate{IDs: []string{"a", "b", "missing", "done"}}, 2}, {"group", store.Gate{Group: "g"}, 2},
		{"both", store.Gate{IDs: []string{"a", "b"}, Group: "g"}, 3}, {"none", store.Gate{IDs: []string{"missing"}, Group: "nobody"}, 0},
	} {
		e.step("%s", c.id)
		m := e.gated(q, c.id, start, c.gate)
		equal(e, "Waits", m.Waits, c.want)
		want := store.Never
		if c.want == 0 {
			want = start
		}
		e.instant("VisibleAt", m.VisibleAt, want)
	}
}

func gateOpen(e *env) {
	for i, end := range []string{"done", "dead", "canceled", "removed", "replaced"} {
		e.step("the member is %s", end)
		q := e.name()
		e.put(start, e.message(q, "member", start))
		m := e.gated(q, "gate", at(time.Minute), store.Gate{IDs: []string{"member"}})
		e.ids(e.claim(at(time.Hour), q, 10), "member")
		member := e.get(store.Key{Queue: q, ID: "member"})
		st := store.Settlement{Token: member.Token(), PurgeAt: store.Never}
		switch i {
		case 0, 3:
			st.Outcome = store.OutcomeDone
		case 1:
			st.Outcome = store.OutcomeBury
		case 2:
			st.Outcome = store.OutcomeCancel
		}
		if end == "removed" {
			st.PurgeAt = at(time.Hour)
		}
		if end == "replaced" {
			member.State, member.FinishedAt, member.PurgeAt = store.Canceled, at(time.Hour), store.Never
			e.is(e.tryReplace(at(time.Hour), store.Revoke, member), nil, "Replace")
		} else {
			e.settle(at(time.Hour), st)
		}
		open := e.get(m.Key())
		equal(e, "Waits", open.Waits, 0)
		e.instant("VisibleAt", open.VisibleAt, at(time.Minute))
		e.ids(e.claim(at(time.Minute-1), q, 10))
		e.ids(e.claim(at(time.Minute), q, 10), "gate")
	}
}

func gateRetry(e *env) {
	q := e.name()
	e.put(start, e.message(q, "member", start))
	m := e.gated(q, "gate", start, store.Gate{IDs: []string{"member"}})
	held := e.claim(start, q, 10)
	e.settle(start, store.Settlement{Token: held[0].Token(), Outcome: store.OutcomeRetry, At: at(time.Hour)})
	equal(e, "Waits", e.get(m.Key()).Waits, 1)
	e.ids(e.claim(at(time.Minute), q, 10))
}

func gateRace(e *env) {
	q := e.name()
	const members = 16
	gate := store.Gate{}
	for i := range members {
		e.put(start, e.message(q, fmt.Sprint("m", i), start))
		gate.IDs = append(gate.IDs, fmt.Sprint("m", i))
	}
	m := e.gated(q, "gate", start, gate)
	equal(e, "Waits", m.Waits, members)
	held := e.claim(start, q, 100)
	var wait sync.WaitGroup
	for _, one := range held {
		wait.Go(func() {
			_, _ = e.s.Settle(e.Context(), start, []store.Settlement{{Token: one.Token(), Outcome: store.OutcomeDone, PurgeAt: start}})
		})
	}
	wait.Wait()
	e.ids(e.claim(start, q, 100), "gate")
	e.ids(e.claim(start, q, 100))
}

func gateWake(e *env) {
	waker, ok := store.Power[store.Waker](e.s)
	if !ok {
		return
	}
	q := e.name()
	heard, stop := e.listen(waker)
	defer stop()
	e.put(start, e.message(q, "member", start))
	m := e.gated(q, "gate", start, store.Gate{IDs: []string{"member"}})
	equal(e, "Waits", m.Waits, 1)
	held := e.claimKeys(start, store.Key{Queue: q, ID: "member"})
	e.settle(start, store.Settlement{Token: held[0].Token(), Outcome: store.OutcomeDone, PurgeAt: store.Never})
	e.hears(heard, q)
}

// listen listens for wake-ups until stop is called.
func (e *env) listen(waker store.Waker) (heard <-chan store.QueueHint, stop func()) {
	e.Helper()
	ctx, cancel := context.WithCancel(e.Context())
	hints, ready, ended := make(chan store.QueueHint, 10_000), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		_ = waker.Listen(ctx, sync.OnceFunc(func() { close(ready) }), func(all []store.QueueHint) {
			for _, h := range all {
				select {
				case hints <- h:
				default:
				}
			}
		})
	}()
	select {
	case <-ready:
	case <-time.After(10 * time.Second):
		cancel()
		e.fail("Listen is not ready after ten seconds")
	}
	return hints, func() { cancel(); <-ended }
}

// hears waits for a wake-up of a queue.
func (e *env) hears(heard <-chan store.QueueHint, queue string) store.QueueHint {
	e.Helper()
	deadline := time.After(10 * time.Second)
	for {
		select {
		case h := <-heard:
			if h.Queue == queue {
				return h
			}
		case <-deadline:
			e.fail("no wake-up of %q was heard in ten seconds", queue)
		}
	}
}
