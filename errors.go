package belfry

import (
	"errors"
	"fmt"
	"time"

	"github.com/belfryhq/belfry/internal/lifecycle"
	"github.com/belfryhq/belfry/store"
	"github.com/belfryhq/belfry/target"
)

// Errors that callers tell apart with errors.Is.
var (
	// ErrNotFound: there is no such message.
	ErrNotFound = store.ErrNotFound
	// ErrExists: the id is taken in its queue; the message that has it is returned beside the error.
	ErrExists = store.ErrExists
	// ErrDuplicate: the dedup key is held by another message, which is returned beside the error.
	ErrDuplicate = store.ErrDuplicate
	// ErrAborted: an atomic batch stored nothing because another of its messages was refused.
	ErrAborted = store.ErrAborted
	// ErrBadCursor: a list's cursor that no list of this order has given.
	ErrBadCursor = store.ErrBadCursor
	// ErrInFlight: the message is being delivered, or is about to be within a moment.
	ErrInFlight = store.ErrInFlight
	// ErrFinished: the message has already reached its end.
	ErrFinished = lifecycle.ErrFinished
	// ErrLive: the message has not reached its end, so there is nothing to revive.
	ErrLive = lifecycle.ErrLive
	// ErrConflict: somebody else changed the message at the same time, again and again.
	ErrConflict = store.ErrConflict
	// ErrLeaseLost: the lease was lost. It is also the cause of a delivery's context that ended for that reason.
	ErrLeaseLost = store.ErrLeaseLost
	// ErrCanceled is the cause of the context of a delivery that was interrupted (Client.Interrupt).
	ErrCanceled = errors.New("delivery canceled")
	// ErrShutdown is the cause of the context of a delivery that outlived its worker's grace period.
	ErrShutdown = errors.New("worker is shutting down")
	// ErrUnsupported: the store cannot do this.
	ErrUnsupported = errors.New("not supported by this store")
)

// InvalidError says what is wrong with an input: which field, which value, and what would be right.
type InvalidError struct {
	Field  string // e.g. "priority"
	Value  string // as given, shortened; empty where it must not be repeated
	Remedy string // e.g. "must be at most 255 bytes"
}

// Error returns the field, the value and the remedy in one line.
func (e *InvalidError) Error() string {
	if e.Value == "" {
		return fmt.Sprintf("invalid %s: %s", e.Field, e.Remedy)
	}
	return fmt.Sprintf("invalid %s %q: %s", e.Field, e.Value, e.Remedy)
}

// invalid makes an InvalidError with the value shortened to what fits a line.
func invalid(field, value, remedy string) error {
	const most = 64
	if len(value) > most {
		value = value[:most] + "…"
	}
	return &InvalidError{Field: field, Value: value, Remedy: remedy}
}

// Permanent marks a handler's error as final: the message is dead without further attempts.
func Permanent(err error) error { return target.Permanent(err) }

// RetryAfter marks a handler's error with the delay after which to try again; the policy caps it, and its limit of
// attempts still holds.
func RetryAfter(err error, after time.Duration) error { return target.RetryAfter(err, after) }

// Snooze gives the message back for a while without counting an attempt.
func Snooze(after time.Duration) error { return target.Snooze(after) }
