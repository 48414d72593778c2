package telemetry

import (
	"context"
	"errors"
	"strconv"

	"github.com/belfryhq/belfry"
	"github.com/belfryhq/belfry/target"
)

// outcome is how a delivery ended, as far as the target decides it: whether a failed attempt was the last one is the
// engine's business and shows in the settlements.
type outcome uint8

const (
	delivered   outcome = iota
	retry               // a failed attempt
	permanent           // a failed attempt after which the message is dead
	snoozed             // given back uncounted
	interrupted         // the engine ended it: the lease was lost, the message interrupted or the worker stopped
	outcomes            // how many there are
)

var outcomeLabels = [outcomes]string{"delivered", "retry", "permanent", "snoozed", "interrupted"}

// outcomeOf tells how a delivery ended, as the engine sees it.
func outcomeOf(ctx context.Context, err error) outcome {
	if err == nil {
		return delivered
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.DeadlineExceeded) {
		return interrupted
	}
	switch verdict, _, _ := target.Judge(err); verdict {
	case target.Bury:
		return permanent
	case target.Postpone:
		return snoozed
	default:
		return retry
	}
}

// errorClass says in one of few words, without the error's text, why a delivery failed.
func errorClass(ctx context.Context, err error, observed *target.Observation) string {
	cause := context.Cause(ctx)
	switch {
	case errors.Is(cause, belfry.ErrLeaseLost):
		return "lease_lost"
	case errors.Is(cause, belfry.ErrShutdown):
		return "shutdown"
	case errors.Is(cause, belfry.ErrCanceled), errors.Is(cause, context.Canceled):
		return "canceled"
	case errors.Is(cause, context.DeadlineExceeded), isTimeout(err):
		return "timeout"
	case observed != nil && observed.Status != 0:
		return strconv.Itoa(observed.Status)
	default:
		return "_OTHER" // the convention's word
	}
}
