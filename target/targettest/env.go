package targettest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/belfryhq/belfry/target"
)

// reporter is the part of a test that a law sees: *testing.T is one; the suite's own test has another, which notes a
// failure instead of failing. Fatalf and Skipf end the calling goroutine, so only the law's own may call them.
type reporter interface {
	Helper()
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
	Context() context.Context
}

// env is what a law works with: a target, its destination, and short forms of what laws do with them.
type env struct {
	reporter
	law     Law
	harness Harness
	target  target.Target
	dest    Destination
	prompt  time.Duration
	where   string // which case of a table is being looked at
}

// patience is how much longer than Prompt a delivery that works may take: it may have to connect, and carry megabytes.
const patience = 5

func newEnv(r reporter, t testing.TB, law Law, h Harness) *env {
	e := &env{reporter: r, law: law, harness: h, prompt: h.Prompt}
	if e.prompt == 0 {
		e.prompt = 3 * time.Second
	}
	e.target, e.dest = h.New(t)
	return e
}

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

// answer says how the destination treats what follows; a law about an answer that the destination does not know is
// skipped.
func (e *env) answer(a Answer) {
	e.Helper()
	if e.can(a) {
		return
	}
	if a.Kind == Accept || a.Kind == Hang {
		e.Fatalf("every destination must be able to %v", a.Kind)
	}
	e.Skipf("the destination has no answer %v %d", a.Kind, a.Status)
}

// can is answer for laws that look at many: it reports whether the destination knows the answer.
func (e *env) can(a Answer) bool { return e.dest.Answer(a) }

// delivery returns a complete delivery with the payload.
func (e *env) delivery(payload []byte) target.Delivery {
	d := e.dest.Delivery()
	now := time.Now().Truncate(time.Millisecond).UTC()
	d.Queue, d.ID, d.Kind = "targettest", "0198c0de-0000-7000-8000-000000000001", "law"
	d.Payload, d.Metadata = payload, []byte(`{"law":true}`)
	d.ContentType = "application/octet-stream"
	d.Headers = map[string]string{"X-Law": "kept"}
	d.Attempt, d.MaxAttempts, d.Fence = 1, 3, 41
	d.FireAt, d.DueAt, d.CreatedAt = now, now, now.Add(-time.Minute)
	return d
}

// deliver calls Deliver and fails the law if that does not come back at all.
func (e *env) deliver(ctx context.Context, d target.Delivery) error {
	e.Helper()
	return e.deliverWithin(ctx, d, patience*e.prompt)
}

// deliverWithin calls Deliver and fails the law if it takes longer than the limit.
func (e *env) deliverWithin(ctx context.Context, d target.Delivery, limit time.Duration) error {
	e.Helper()
	done := make(chan error, 1)
	go func() { done <- e.target.Deliver(ctx, d) }()
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case err := <-done:
		return err
	case <-late.C:
		e.fail("Deliver had not returned after %v", limit)
		return nil
	}
}

// accepted delivers what must be accepted.
func (e *env) accepted(d target.Delivery) {
	e.Helper()
	if err := e.deliver(e.Context(), d); err != nil {
		e.fail("Deliver to a destination that accepts: %v", err)
	}
}

// judged fails the law unless the error has the verdict, with no delay asked for.
func (e *env) judged(err error, want target.Verdict) {
	e.Helper()
	if got, after, asked := target.Judge(err); got != want || asked {
		e.fail("the verdict of %v is %v (delay asked for: %t, %v), want %v", describe(err), verdictName(got), asked, after, verdictName(want))
	}
}

// arrived waits for n arrivals and returns them; more or fewer fail the law.
func (e *env) arrived(n int) []Arrival {
	e.Helper()
	got := e.arrivals(n)
	if len(got) != n {
		e.fail("%d deliveries arrived, want %d", len(got), n)
	}
	return got
}

// arrivals waits for n arrivals, but not for ever, and returns all there are.
func (e *env) arrivals(n int) []Arrival {
	ctx, cancel := context.WithTimeout(e.Context(), e.prompt)
	defer cancel()
	return e.dest.Arrivals(ctx, n)
}

// describe returns an error as a failure tells it.
func describe(err error) string {
	if err == nil {
		return "no error"
	}
	return fmt.Sprintf("%q", err)
}

// verdictName returns the verdict in a word.
func verdictName(v target.Verdict) string {
	switch v {
	case target.Delivered:
		return "delivered"
	case target.Retry:
		return "retry"
	case target.Bury:
		return "bury"
	case target.Postpone:
		return "postpone"
	default:
		return fmt.Sprintf("verdict(%d)", v)
	}
}

// recoveryPause is how long the suite waits between attempts at a destination that has just come back.
const recoveryPause = 20 * time.Millisecond
