package target

import (
	"errors"
	"fmt"
	"time"
)

// Verdict is what an error of Deliver means to the engine.
type Verdict uint8

// The verdicts.
const (
	Delivered Verdict = iota // nil
	Retry                    // a plain error: try again by the message's policy
	Bury                     // Permanent: do not try again
	Postpone                 // Snooze: give it back without counting the attempt
)

type permanentError struct{ error }

func (e permanentError) Unwrap() error { return e.error }

type retryAfterError struct {
	error
	after time.Duration
}

func (e retryAfterError) Unwrap() error { return e.error }

type snoozeError struct{ after time.Duration }

func (e snoozeError) Error() string { return fmt.Sprintf("snoozed for %v", e.after) }

// Permanent marks an error as final: the message is dead without further attempts. A nil err gives a nil error.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return permanentError{err}
}

// RetryAfter marks an error with the delay the destination asked for; the message's policy caps it, and its limit of
// attempts still holds. A nil err gives a nil error; a negative delay counts as zero.
func RetryAfter(err error, after time.Duration) error {
	if err == nil {
		return nil
	}
	return retryAfterError{err, max(after, 0)}
}

// Snooze gives the message back for a while without counting an attempt. A negative delay counts as zero.
func Snooze(after time.Duration) error { return snoozeError{max(after, 0)} }

// Judge returns the verdict in an error and, for Retry and Postpone, the delay that was asked for; asked is false where
// the policy decides. Verdicts are found through wrapped errors; of several the outermost counts.
func Judge(err error) (verdict Verdict, after time.Duration, asked bool) {
	for e := err; e != nil; e = errors.Unwrap(e) {
		switch v := e.(type) { //nolint:errorlint // each link of the chain is looked at in turn
		case permanentError:
			return Bury, 0, false
		case retryAfterError:
			return Retry, v.after, true
		case snoozeError:
			return Postpone, v.after, true
		case interface{ Unwrap() []error }:
			return judgeJoined(v.Unwrap())
		}
	}
	if err == nil {
		return Delivered, 0, false
	}
	return Retry, 0, false
}

// judgeJoined returns the first verdict in a joined error that is more than a plain one.
func judgeJoined(errs []error) (Verdict, time.Duration, bool) {
	for _, err := range errs {
		if verdict, after, asked := Judge(err); verdict != Delivered && (verdict != Retry || asked) {
			return verdict, after, asked
		}
	}
	return Retry, 0, false
}
