package targettest

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"sync"

	"github.com/belfryhq/belfry/target"
)

func deliveryLaws() []Law {
	return []Law{
		{"concurrent", "Deliveries at the same time all arrive, each once and with its own headers", checkConcurrent},
		{"kept", "Once Deliver has returned, nothing of the delivery is used any more", checkKept},
		{"changed", "Deliver changes nothing of the delivery", checkChanged},
		{"check", "Check accepts what can be delivered", checkCheck},
		{"trace", "The trace that travels in a delivery's params is no business of the target", checkTrace},
		{"lane", "The lane depends on the address alone", checkLane},
	}
}

func checkConcurrent(e *env) {
	const workers, each = 16, 8
	errs := make(chan error, workers*each)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range each {
				name := fmt.Sprintf("%d/%d", w, i)
				d := e.delivery([]byte(name))
				d.ID, d.Headers = name, map[string]string{"X-Law": name}
				errs <- e.target.Deliver(e.Context(), d)
			}
		})
	}
	wg.Wait()
	for range workers * each {
		if err := <-errs; err != nil {
			e.fail("one of them failed: %v", err)
		}
	}
	seen := make(map[string]int)
	for _, a := range e.arrived(workers * each) {
		seen[string(a.Payload)]++
		if got := fold(a.Headers)["x-law"]; got != string(a.Payload) {
			e.fail("%q arrived with the headers of %q", a.Payload, got)
		}
	}
	if len(seen) != workers*each {
		e.fail("%d different ones arrived, want %d", len(seen), workers*each)
	}
}

// spoiled is what the suite overwrites payloads with that must no longer be used.
const spoiled = 0xff

func checkKept(e *env) {
	for _, kind := range []Kind{Accept, Fail, Cut, Unreachable} {
		if !e.can(Answer{Kind: kind}) {
			continue
		}
		for _, size := range []int{100, 1_000_000} {
			d := e.delivery(bytes.Repeat([]byte{'k'}, size))
			_ = e.deliver(e.Context(), d) // whatever became of it
			for i := range d.Payload {
				d.Payload[i] = spoiled
			}
			clear(d.Metadata)
			clear(d.Params)
			d.Headers["X-Law"] = "spoiled"
		}
	}
	e.answer(Answer{Kind: Accept})
	e.eventuallyAccepted(e.delivery([]byte("last")))
	e.lastArrival("last", func(a Arrival) {
		if bytes.IndexByte(a.Payload, spoiled) >= 0 || fold(a.Headers)["x-law"] == "spoiled" {
			e.fail("what the delivery was overwritten with afterwards arrived")
		}
	})
}

func checkChanged(e *env) {
	for _, kind := range []Kind{Accept, Fail} {
		e.step("%v", kind)
		if !e.can(Answer{Kind: kind}) {
			continue
		}
		d := e.delivery([]byte("unchanged"))
		before := clone(d)
		_ = e.deliver(e.Context(), d)
		if !reflect.DeepEqual(d, before) {
			e.fail("it was %+v and is %+v", before, d)
		}
	}
}

// clone returns a delivery that shares nothing with d.
func clone(d target.Delivery) target.Delivery {
	d.Payload, d.Metadata = bytes.Clone(d.Payload), bytes.Clone(d.Metadata)
	d.Headers, d.Params = maps.Clone(d.Headers), maps.Clone(d.Params)
	return d
}

func checkCheck(e *env) {
	c, ok := e.target.(target.Checker)
	if !ok {
		e.Skipf("the target is no Checker")
	}
	for name, payload := range payloads() {
		e.step("payload: %s", name)
		if err := c.Check(e.delivery(payload)); err != nil {
			e.fail("it says: %v", err)
		}
	}
}

// checkTrace delivers a message that a client with traces has accepted through an engine that has none.
func checkTrace(e *env) {
	d := e.delivery([]byte("traced"))
	d.Params = maps.Clone(d.Params)
	if d.Params == nil {
		d.Params = map[string]string{}
	}
	d.Params[target.TracePrefix+"traceparent"] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	if c, ok := e.target.(target.Checker); ok {
		if err := c.Check(d); err != nil {
			e.fail("Check says: %v", err)
		}
	}
	e.eventuallyAccepted(d)
}

func checkLane(e *env) {
	l, ok := e.target.(target.Laner)
	if !ok {
		e.Skipf("the target is no Laner")
	}
	one, other := e.delivery([]byte("one")), e.delivery([]byte("other"))
	other.ID, other.Attempt, other.Fence, other.Headers = "other", 2, 99, nil
	if a, b := l.Lane(one), l.Lane(other); a != b {
		e.fail("two messages to one address are in the lanes %q and %q", a, b)
	}
}
