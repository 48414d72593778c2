package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/belfryhq/belfry/store"
)

// reporter is the part of a test that a law sees: *testing.T is one; the suite's own test has another, which notes a
// failure instead of failing. Fatalf and Skipf end the calling goroutine, so only the law's own may call them.
type reporter interface {
	Helper()
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
	Context() context.Context
}

// env is what a law works with: a store, which it may share with other laws, and short forms of its methods that fail
// the law when the store answers what no law allows.
type env struct {
	reporter
	law    Law
	s      store.Store
	scale  Scale
	open   func() store.Store              // another empty store, for laws that look at a store as a whole
	reopen func(s store.Store) store.Store // nil: it cannot be reopened
	where  string                          // which case of a table is being looked at
	count  int                             // of the names given
}

// newEnv returns what the law works with when it runs on the store.
func newEnv(r reporter, t testing.TB, law Law, s store.Store, open Opener, o Options) *env {
	e := &env{reporter: r, law: law, s: s, scale: o.Scale, open: func() store.Store { return open(t) }}
	if o.Reopen != nil {
		e.reopen = func(s store.Store) store.Store { return o.Reopen(t, s) }
	}
	return e
}

// fresh goes on with a store of the law's own.
func (e *env) fresh() { e.s = e.open() }

// start is the first instant of every law. It lies in a year in which no clock is, so that a store that reads one fails.
var start = time.Date(2031, time.March, 4, 5, 6, 7, 8_000_000, time.UTC)

// lease is how long leases are where a law does not care.
const lease = 30 * time.Second

// at returns the instant that is d after the first one.
func at(d time.Duration) time.Time { return start.Add(d) }

// step names the case of a table that follows; failures tell it.
func (e *env) step(format string, args ...any) { e.where = fmt.Sprintf(format, args...) }

// fail ends the law as broken. The message begins with its rule.
func (e *env) fail(format string, args ...any) {
	e.Helper()
	what := fmt.Sprintf(format, args...)
	if e.where != "" {
		what = "[" + e.where + "] " + what
	}
	e.Fatalf("%s: %s", e.law.Rule, what)
}

// name returns a name that no other law uses: for a queue, an owner, a doc.
func (e *env) name() string {
	e.count++
	return fmt.Sprintf("%s#%d", e.law.Name, e.count)
}

// message returns a small message that is due at the instant.
func (e *env) message(queue, id string, fire time.Time) store.Message {
	return store.Message{Queue: queue, ID: id, Kind: "kind", Payload: []byte(id), FireAt: fire}
}

// messages returns n messages that are due at the instant, with ids that sort as they are numbered.
func (e *env) messages(queue string, n int, fire time.Time) []store.Message {
	ms := make([]store.Message, n)
	for i := range ms {
		ms[i] = e.message(queue, fmt.Sprintf("m%07d", i), fire)
	}
	return ms
}

// put stores messages, all of which must be accepted, in batches of a size that any store takes. It returns their versions.
func (e *env) put(now time.Time, ms ...store.Message) []int64 {
	e.Helper()
	var versions []int64
	for batch := range slices.Chunk(ms, 1000) {
		for i, r := range e.tryPut(now, 0, batch...) {
			if r.Err != nil {
				e.fail("Put of %q refused: %v", batch[i].ID, r.Err)
			}
			versions = append(versions, r.Version)
		}
	}
	return versions
}

// tryPut puts messages and returns what became of each.
func (e *env) tryPut(now time.Time, mode store.PutMode, ms ...store.Message) []store.PutResult {
	e.Helper()
	res, err := e.s.Put(e.Context(), now, ms, mode)
	if err != nil {
		e.fail("Put: %v", err)
	}
	if len(res) != len(ms) {
		e.fail("Put of %d messages gave %d results", len(ms), len(res))
	}
	return res
}

// claim leases at most limit messages of a queue until now + lease.
func (e *env) claim(now time.Time, queue string, limit int) []store.Message {
	e.Helper()
	return e.claimAs(store.Claim{Now: now, Queues: []store.QueueClaim{{Queue: queue, Limit: limit}}}).Messages
}

// claimAs claims as told. A zero Until is now + lease, an empty owner "node" in its incarnation 1.
func (e *env) claimAs(c store.Claim) store.Claimed {
	e.Helper()
	if c.Until.IsZero() {
		c.Until = store.Floor(c.Now).Add(lease)
	}
	if c.Owner == "" {
		c.Owner, c.Epoch = "node", 1
	}
	got, err := e.s.Claim(e.Context(), c)
	if err != nil {
		e.fail("Claim: %v", err)
	}
	if len(got.Queues) != len(c.Queues) {
		e.fail("Claim of %d queues told of %d", len(c.Queues), len(got.Queues))
	}
	return got
}

// claimKeys leases messages by address.
func (e *env) claimKeys(now time.Time, keys ...store.Key) []store.Message {
	e.Helper()
	return e.claimAs(store.Claim{Now: now, Keys: keys}).Messages
}

// hold puts one message that is due and leases it until now + lease.
func (e *env) hold(now time.Time, m store.Message) store.Message {
	e.Helper()
	e.put(now, m)
	got := e.claimKeys(now, m.Key())
	e.ids(got, m.ID)
	return got[0]
}

// settle ends leases; all settlements must be accepted.
func (e *env) settle(now time.Time, ss ...store.Settlement) {
	e.Helper()
	for i, err := range e.trySettle(now, ss...) {
		if err != nil {
			e.fail("Settle of %q with a current token: %v", ss[i].Token.ID, err)
		}
	}
}

// trySettle ends leases and returns what became of each settlement.
func (e *env) trySettle(now time.Time, ss ...store.Settlement) []error {
	e.Helper()
	errs, err := e.s.Settle(e.Context(), now, ss)
	if err != nil {
		e.fail("Settle: %v", err)
	}
	if len(errs) != len(ss) {
		e.fail("Settle of %d leases gave %d results", len(ss), len(errs))
	}
	return errs
}

// extend moves the end of one lease.
func (e *env) extend(now time.Time, token store.Token, until time.Time) store.Held {
	e.Helper()
	held, err := e.s.Extend(e.Context(), now, []store.Token{token}, until)
	if err != nil {
		e.fail("Extend: %v", err)
	}
	if len(held) != 1 {
		e.fail("Extend of one token gave %d answers", len(held))
	}
	return held[0]
}

// replace swaps messages for what they shall be; all must be accepted.
func (e *env) replace(now time.Time, ms ...store.Message) {
	e.Helper()
	for _, m := range ms {
		if err := e.tryReplace(now, store.Swap, m); err != nil {
			e.fail("Replace of %q at its version: %v", m.ID, err)
		}
	}
}

// tryReplace changes one message and returns what became of it.
func (e *env) tryReplace(now time.Time, mode store.ChangeMode, m store.Message) error {
	e.Helper()
	errs, err := e.s.Replace(e.Context(), now, []store.Change{{Message: m, Mode: mode}})
	if err != nil {
		e.fail("Replace: %v", err)
	}
	if len(errs) != 1 {
		e.fail("Replace of one message gave %d results", len(errs))
	}
	return errs[0]
}

// get reads a message that must be there.
func (e *env) get(key store.Key) store.Message {
	e.Helper()
	m, err := e.s.Get(e.Context(), key)
	if err != nil {
		e.fail("Get of %q: %v", key.ID, err)
	}
	return m
}

// absent fails unless nothing is stored under the key, whoever asks.
func (e *env) absent(key store.Key) {
	e.Helper()
	m, err := e.s.Get(e.Context(), key)
	if !errors.Is(err, store.ErrNotFound) {
		e.fail("Get of %q, which should be gone: %s, %v", key.ID, m.State, err)
	}
	for _, m := range e.list(store.Query{Queue: key.Queue, Limit: 1000}).Messages {
		if m.ID == key.ID {
			e.fail("List has %q, which should be gone, as %s", key.ID, m.State)
		}
	}
}

// list reads one page.
func (e *env) list(q store.Query) store.Page {
	e.Helper()
	page, err := e.s.List(e.Context(), q)
	if err != nil {
		e.fail("List: %v", err)
	}
	return page
}

// total counts what matches.
func (e *env) total(q store.Query) int {
	e.Helper()
	n, err := e.s.Count(e.Context(), q)
	if err != nil {
		e.fail("Count: %v", err)
	}
	return int(n)
}

// ids fails unless the messages are those, in that order.
func (e *env) ids(ms []store.Message, want ...string) {
	e.Helper()
	got := make([]string, len(ms))
	for i, m := range ms {
		got[i] = m.ID
	}
	if !slices.Equal(got, want) {
		e.fail("got the messages %s, want %s", brief(got), brief(want))
	}
}

// is fails unless err is the sentinel; nil asks for none.
func (e *env) is(err, want error, what string) {
	e.Helper()
	if !errors.Is(err, want) || (want == nil) != (err == nil) {
		e.fail("%s: got the error %v, want %v", what, err, want)
	}
}

// same fails unless two messages have equal fields, those named apart.
func (e *env) same(got, want store.Message, but ...string) {
	e.Helper()
	if d := diff(got, want, but...); d != "" {
		e.fail("%q differs: %s", want.ID, d)
	}
}

// equal fails unless two values are equal.
func equal[T comparable](e *env, what string, got, want T) {
	e.Helper()
	if got != want {
		e.fail("%s: got %s, want %s", what, brief(got), brief(want))
	}
}

// instant fails unless two instants are equal.
func (e *env) instant(what string, got, want time.Time) {
	e.Helper()
	if !got.Equal(want) {
		e.fail("%s: got %s, want %s", what, brief(got), brief(want))
	}
}

// together runs f n times at once and fails with the first error that one returns.
func (e *env) together(n int, f func(i int) error) {
	e.Helper()
	var group sync.WaitGroup
	gate, errs := make(chan struct{}), make([]error, n)
	for i := range n {
		group.Go(func() {
			<-gate
			errs[i] = f(i)
		})
	}
	close(gate)
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		e.fail("%v", err)
	}
}
