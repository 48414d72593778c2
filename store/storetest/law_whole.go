package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/belfryhq/belfry/store"
)

func wholeLaws() []Law {
	return []Law{
		{"many/batches", "every method takes thousands at once", manyBatches},
		{"many/canceled", "a call whose context ended is done whole or not at all, and can be repeated", manyCanceled},
		{"wake/heard", "a wake-up reaches who listens", wakeHeard},
		{"close/reopen", "what was stored is there when the store is opened again", closeReopen},
		{"close/end", "a closed store refuses everything, and may be closed again", closeEnd},
	}
}

func manyBatches(e *env) {
	n := 5000
	if e.scale == Small {
		n = 500
	}
	q := e.name()
	for i, r := range e.tryPut(start, 0, e.messages(q, n, start)...) {
		e.is(r.Err, nil, fmt.Sprint("Put of message ", i))
	}
	held := e.claim(start, q, n)
	equal(e, "claimed", len(held), n)
	tokens, settlements := make([]store.Token, n), make([]store.Settlement, n)
	for i := range held {
		tokens[i] = held[i].Token()
		settlements[i] = store.Settlement{Token: tokens[i], Outcome: store.OutcomeRelease, At: at(time.Hour)}
	}
	extended, err := e.s.Extend(e.Context(), start, tokens, at(2*lease))
	if err != nil || len(extended) != n || extended[n-1] != store.Extended {
		e.fail("Extend of %d leases: %d answers, %v", n, len(extended), err)
	}
	e.settle(start, settlements...)
	changes := make([]store.Change, n)
	for i := range held {
		m := held[i]
		m.Version++
		m.State, m.DueAt, m.PurgeAt = store.Canceled, start, start
		changes[i] = store.Change{Message: m}
	}
	errs, err := e.s.Replace(e.Context(), start, changes)
	if err != nil || errors.Join(errs...) != nil {
		e.fail("Replace of %d messages: %v, %v", n, err, errors.Join(errs...))
	}
	equal(e, "messages left", e.total(store.Query{Queue: q}), 0)
	for _, call := range []func() error{
		func() error { _, err := e.s.Put(e.Context(), start, nil, 0); return err },
		func() error { _, err := e.s.Claim(e.Context(), store.Claim{Now: start, Until: at(lease)}); return err },
		func() error { _, err := e.s.Settle(e.Context(), start, nil); return err },
		func() error { _, err := e.s.Extend(e.Context(), start, nil, at(lease)); return err },
		func() error { _, err := e.s.Replace(e.Context(), start, nil); return err },
	} {
		e.is(call(), nil, "an empty batch")
	}
}

func manyCanceled(e *env) {
	q := e.name()
	ended, cancel := context.WithCancel(e.Context())
	cancel()
	if _, err := e.s.Put(ended, start, e.messages(q, 3, start), 0); err == nil {
		e.fail("Put on a context that has ended returned no error")
	}
	var wait sync.WaitGroup
	for i := range 32 {
		wait.Go(func() {
			ctx, cancel := context.WithTimeout(e.Context(), rand.N(2*time.Millisecond))
			defer cancel()
			_, _ = e.s.Put(ctx, start, e.messages(fmt.Sprint(q, i), 50, start), store.Atomic)
		})
	}
	wait.Wait()
	for i := range 32 {
		queue := fmt.Sprint(q, i)
		if n := e.total(store.Query{Queue: queue}); n != 0 && n != 50 {
			e.fail("an atomic Put whose context ended stored %d of 50 messages", n)
		}
		e.tryPut(start, 0, e.messages(queue, 50, start)...)
		equal(e, "messages after the repetition", e.total(store.Query{Queue: queue}), 50)
	}
}

func wakeHeard(e *env) {
	waker, ok := store.Power[store.Waker](e.s)
	if !ok {
		return
	}
	q := e.name()
	heard, stop := e.listen(waker)
	defer stop()
	if err := waker.Wake(e.Context(), []store.QueueHint{{Queue: q, At: at(time.Minute)}}); err != nil {
		e.fail("Wake: %v", err)
	}
	e.instant("the wake-up's instant", e.hears(heard, q).At, at(time.Minute))
}

func closeReopen(e *env) {
	if e.reopen == nil {
		return
	}
	e.fresh()
	e.put(start, e.message("q", "waits", at(time.Hour)))
	e.ended("q", "done", store.Never)
	version, err := e.s.Docs().Put(e.Context(), store.Doc{Name: "doc", Body: []byte("body")})
	e.is(err, nil, "Put of a doc")
	e.put(start, e.message("q", "member", at(time.Hour)))
	e.gated("q", "gate", at(time.Hour), store.Gate{IDs: []string{"member"}})
	before := map[string]store.Message{}
	for _, id := range []string{"waits", "done", "member", "gate"} {
		before[id] = e.get(store.Key{Queue: "q", ID: id})
	}
	e.s = e.reopen(e.s)
	for id, want := range before {
		e.same(e.get(store.Key{Queue: "q", ID: id}), want)
	}
	doc, err := e.s.Docs().Get(e.Context(), "doc")
	if err != nil || string(doc.Body) != "body" || doc.Version != version {
		e.fail("the doc is %q at version %d, %v", doc.Body, doc.Version, err)
	}
	e.put(start, e.message("q", "new", start))
	if got := e.get(store.Key{Queue: "q", ID: "new"}); got.Version <= before["gate"].Version {
		e.fail("versions went back from %d to %d", before["gate"].Version, got.Version)
	}
}

func closeEnd(e *env) {
	e.fresh()
	e.put(start, e.message("q", "m", start))
	for range 2 {
		e.is(e.s.Close(), nil, "Close")
	}
	_, err := e.s.Put(e.Context(), start, e.messages("q", 1, start), 0)
	e.is(err, store.ErrClosed, "Put")
	_, err = e.s.Get(e.Context(), store.Key{Queue: "q", ID: "m"})
	e.is(err, store.ErrClosed, "Get")
	_, err = e.s.Claim(e.Context(), store.Claim{Now: start, Until: at(lease)})
	e.is(err, store.ErrClosed, "Claim")
	e.is(e.s.Ping(e.Context()), store.ErrClosed, "Ping")
}
