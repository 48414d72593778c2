package targettest

import (
	"time"

	"github.com/belfryhq/belfry/target"
)

func verdictLaws() []Law {
	return []Law{
		{"accept", "A delivery that the destination accepts is delivered, and arrives once", checkAccept},
		{"fail", "A delivery that fails is one attempt, to be tried again by the message's policy", checkFail},
		{"refuse", "A delivery that the destination refuses for good is not tried again", checkRefuse},
		{"cut", "A connection that ends without an answer is one failed attempt", checkCut},
		{"echo", "An answer that the protocol does not know is a failed attempt", checkEcho},
		{"unreachable", "A destination that cannot be reached is a failed attempt, not a hang", checkUnreachable},
		{"recovery", "A destination that works again is delivered to again", checkRecovery},
	}
}

func checkAccept(e *env) {
	err := e.deliver(e.Context(), e.delivery([]byte("first")))
	e.judged(err, target.Delivered)
	e.arrived(1)
	e.accepted(e.delivery([]byte("second")))
	got := e.arrived(2)
	if string(got[0].Payload) != "first" || string(got[1].Payload) != "second" {
		e.fail("what arrived is %q and %q", got[0].Payload, got[1].Payload)
	}
}

// once fails the law if more than one delivery arrived that was not accepted, between two that were.
func (e *env) once(a Answer) {
	e.Helper()
	e.accepted(e.delivery([]byte("before")))
	e.arrived(1)
	e.answer(a)
	e.judged(e.deliver(e.Context(), e.delivery([]byte("failed"))), target.Retry)
	e.answer(Answer{Kind: Accept})
	e.accepted(e.delivery([]byte("after")))
	times := 0
	e.lastArrival("after", func(a Arrival) {
		if string(a.Payload) == "failed" {
			times++
		}
	})
	if times > 1 {
		e.fail("it was sent %d times in one attempt", times)
	}
}

func checkFail(e *env) { e.once(Answer{Kind: Fail}) }

func checkCut(e *env) { e.once(Answer{Kind: Cut}) }

func checkEcho(e *env) { e.once(Answer{Kind: Echo}) }

func checkRefuse(e *env) {
	e.answer(Answer{Kind: Refuse})
	e.judged(e.deliver(e.Context(), e.delivery([]byte("x"))), target.Bury)
}

func checkUnreachable(e *env) {
	e.answer(Answer{Kind: Unreachable})
	e.judged(e.deliver(e.Context(), e.delivery([]byte("x"))), target.Retry)
}

func checkRecovery(e *env) {
	e.accepted(e.delivery([]byte("before")))
	tried := false
	for _, kind := range []Kind{Fail, Cut, Unreachable} {
		e.step("after %v", kind)
		if !e.can(Answer{Kind: kind}) {
			continue
		}
		tried = true
		if err := e.deliver(e.Context(), e.delivery([]byte("lost"))); err == nil {
			e.fail("it was delivered")
		}
		e.answer(Answer{Kind: Accept})
		e.eventuallyAccepted(e.delivery([]byte("again")))
	}
	if !tried {
		e.Skipf("the destination cannot fail")
	}
}

// eventuallyAccepted delivers until that succeeds: a target that connects in the background needs a moment.
func (e *env) eventuallyAccepted(d target.Delivery) {
	e.Helper()
	deadline := time.After(patience * e.prompt)
	for {
		err := e.deliver(e.Context(), d)
		if err == nil {
			return
		}
		select {
		case <-deadline:
			e.fail("it still fails: %v", err)
		case <-time.After(recoveryPause):
		}
	}
}
