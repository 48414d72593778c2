package targettest

import (
	"context"
	"errors"
	"time"

	"github.com/belfryhq/belfry/target"
)

func contextLaws() []Law {
	return []Law{
		{"cancel", "Deliver ends when its context is canceled, with an error that wraps the cause", checkCancel},
		{"deadline", "Deliver ends at its context's deadline, with an error that wraps it", checkDeadline},
		{"timeout", "Deliver ends by itself after the message's own timeout, as a failed attempt", checkTimeout},
		{"ended", "Nothing is delivered under a context that has ended", checkEnded},
	}
}

// moment is how long a delivery hangs before something is done about it. The outcome does not depend on it.
const moment = 50 * time.Millisecond

var errCause = errors.New("the lease was lost")

// hang makes the destination hang after it has accepted a delivery: what has to be set up for one is set up.
func (e *env) hang() {
	e.Helper()
	e.accepted(e.delivery([]byte("before")))
	e.answer(Answer{Kind: Hang})
}

func checkCancel(e *env) {
	e.hang()
	ctx, cancel := context.WithCancelCause(e.Context())
	defer time.AfterFunc(moment, func() { cancel(errCause) }).Stop()
	e.interrupted(ctx, errCause)
}

func checkDeadline(e *env) {
	e.hang()
	ctx, cancel := context.WithTimeout(e.Context(), moment)
	defer cancel()
	e.interrupted(ctx, context.DeadlineExceeded)
}

// interrupted delivers to a destination that hangs and fails the law unless that ends with the context, and with its
// cause.
func (e *env) interrupted(ctx context.Context, cause error) {
	e.Helper()
	err := e.deliverWithin(ctx, e.delivery([]byte("x")), e.prompt)
	if ctx.Err() == nil {
		e.fail("it returned %v before the context had ended", describe(err))
	}
	if !errors.Is(err, cause) {
		e.fail("it returned %v", describe(err))
	}
	e.judged(err, target.Retry)
}

func checkTimeout(e *env) {
	e.hang()
	d := e.delivery([]byte("x"))
	d.Timeout = 2 * moment
	e.judged(e.deliverWithin(e.Context(), d, e.prompt), target.Retry)
}

func checkEnded(e *env) {
	ctx, cancel := context.WithCancelCause(e.Context())
	cancel(errCause)
	err := e.deliverWithin(ctx, e.delivery([]byte("too late")), e.prompt)
	if !errors.Is(err, errCause) {
		e.fail("it returned %v", describe(err))
	}
	e.accepted(e.delivery([]byte("in time")))
	e.lastArrival("in time", func(a Arrival) {
		if string(a.Payload) == "too late" {
			e.fail("it arrived")
		}
	})
}
