package lifecycle

import (
	"errors"
	"fmt"
	"time"

	"github.com/belfryhq/belfry/store"
)

// Why a change from outside is refused; found with errors.Is.
var (
	// ErrFinished: the message has reached its end and cannot be changed so.
	ErrFinished = errors.New("message is finished")
	// ErrUnchanged: the message is already as it was asked to be; nothing needs to be written.
	ErrUnchanged = errors.New("message is unchanged")
	// ErrLive: the message has not reached its end, so there is nothing to revive.
	ErrLive = errors.New("message is live")
	// ErrExpires: the message would expire before it could be delivered.
	ErrExpires = errors.New("message expires before that")
)

// Cancel calls a live message off. A canceled one is returned as it is with ErrUnchanged, so that a repeated cancel can
// answer like the first; a done or dead one yields ErrFinished. Whether a leased message may be canceled is for the
// store to say, by the mode of the change.
func Cancel(m store.Message, now time.Time) (store.Message, error) {
	switch {
	case m.State == store.Canceled:
		return m, ErrUnchanged
	case !m.State.Live():
		return m, refused("cancel", &m, ErrFinished)
	}
	return ended(m, store.OutcomeCancel, now), nil
}

// Reschedule gives a live message a new instant, rounded up to the millisecond; a zero `at` means now. A message that
// waits for its retry starts at the new instant instead: what it has used up of its policy stays used up, its last error
// stays, and MaxAge is measured from the new instant. An instant at or after ExpiresAt yields ErrExpires: whoever moves
// the message beyond it gives it a new ExpiresAt first.
func Reschedule(m store.Message, at, now time.Time) (store.Message, error) {
	if !m.State.Live() {
		return m, refused("reschedule", &m, ErrFinished)
	}
	at = instant(at, now)
	if !m.ExpiresAt.IsZero() && !store.Later(at, now).Before(m.ExpiresAt) {
		return m, fmt.Errorf("reschedule to %s: it expires at %s, give a later expiry first: %w",
			at.Format(time.RFC3339Nano), m.ExpiresAt.Format(time.RFC3339Nano), ErrExpires)
	}
	return scheduled(m, at), nil
}

// Revive gives a finished message a new life at an instant, rounded up to the millisecond; a zero `at` means now.
// Attempts and claims begin again at zero; the history and the last error stay, so that one can see why it was revived,
// until the next attempt replaces the error. An expiry that would end it at once is dropped, because a revival asks for a
// delivery; a later one stays. A live message yields ErrLive.
func Revive(m store.Message, at, now time.Time) (store.Message, error) {
	if !m.State.Finished() {
		return m, refused("revive", &m, ErrLive)
	}
	at = instant(at, now)
	if !store.Later(at, now).Before(m.ExpiresAt) {
		m.ExpiresAt = time.Time{}
	}
	m.Attempts, m.Claims = 0, 0
	m.FinishedAt, m.PurgeAt = time.Time{}, time.Time{}
	return scheduled(m, at), nil
}

// Remove takes a message out of the store, live or finished, and frees its dedup key: a live one counts as canceled for
// what waits for it. Whether a leased message may be removed is for the store to say, by the mode of the change.
func Remove(m store.Message, now time.Time) (store.Message, error) {
	if !m.State.Live() && !m.State.Finished() {
		return m, fmt.Errorf("remove message %q: %v is not a state a stored message can have", m.ID, m.State)
	}
	if m.State.Live() {
		m = ended(m, store.OutcomeCancel, now)
	}
	m.PurgeAt, m.DedupUntil = store.Floor(now), time.Time{}
	return m, nil
}

// Finish returns until when a message is kept that ends now: by its retention, at least as long as its dedup key is
// held, and Never where it is kept for ever; zero for an outcome that leaves the message live. Not after now means that
// the store removes it with the same write.
func Finish(m *store.Message, outcome store.Outcome, now time.Time) time.Time {
	var keep time.Duration
	switch outcome.State() {
	case store.Scheduled:
		return time.Time{}
	case store.Dead:
		keep = m.Retention.Dead
	default:
		keep = m.Retention.Done
	}
	switch {
	case keep < 0:
		return store.Never
	case keep == 0:
		return store.Later(store.Floor(now), store.Ceil(m.DedupUntil))
	default:
		return store.Later(after(now, keep), store.Ceil(m.DedupUntil))
	}
}

// ended returns the message as it is after a terminal outcome.
func ended(m store.Message, outcome store.Outcome, now time.Time) store.Message {
	m.State, m.FinishedAt, m.PurgeAt = outcome.State(), store.Floor(now), Finish(&m, outcome, now)
	return m
}

// scheduled returns the message as it is when it waits for an instant.
func scheduled(m store.Message, at time.Time) store.Message {
	m.State, m.FireAt, m.DueAt = store.Scheduled, at, at
	return m
}

// instant returns an asked instant as it is stored.
func instant(at, now time.Time) time.Time {
	if at.IsZero() {
		at = now
	}
	return store.Earlier(store.Ceil(at), store.Never)
}

func refused(operation string, m *store.Message, reason error) error {
	return fmt.Errorf("%s: %w: it is %v", operation, reason, m.State)
}
