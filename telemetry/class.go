package telemetry

import (
	"context"
	"errors"

	"github.com/belfryhq/belfry/store"
)

// class is what kind of failure an error of a store is.
type class uint8

const (
	canceled class = iota // the caller gave up
	timedOut
	closed
	otherError
	classes // how many there are
)

var classNames = [classes]string{"canceled", "timeout", "closed", "other"}

// answers are the errors by which a store answers a question; they are no failures.
var answers = [...]error{
	store.ErrNotFound, store.ErrConflict, store.ErrExists, store.ErrDuplicate, store.ErrInFlight, store.ErrLeaseLost,
	store.ErrAborted, store.ErrBadCursor,
}

// classify tells the class of a failed call; failed is false when there was an answer. Drivers name the end of a context
// in many ways, so the context is asked first.
func classify(ctx context.Context, err error) (c class, failed bool) {
	if err == nil {
		return 0, false
	}
	for _, answer := range answers {
		if errors.Is(err, answer) {
			return 0, false
		}
	}
	switch {
	case errors.Is(err, store.ErrClosed):
		return closed, true
	case errors.Is(ctx.Err(), context.Canceled), errors.Is(err, context.Canceled):
		return canceled, true
	case ctx.Err() != nil, isTimeout(err):
		return timedOut, true
	default:
		return otherError, true
	}
}

// isTimeout reports whether an error is that something took too long, whoever says so.
func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}
