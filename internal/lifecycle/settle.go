package lifecycle

import (
	"bytes"
	"fmt"
	"time"

	"github.com/belfryhq/belfry/store"
	"github.com/belfryhq/belfry/target"
)

// Result is what one delivery came to.
type Result struct {
	Err       error         // the target's verdict; nil: delivered
	StartedAt time.Time     // zero: nothing was delivered
	Duration  time.Duration // how long the target took
	Status    int           // the target's status code; zero: none
	Response  []byte        // the beginning of the target's answer
	Owner     string        // the node that delivered
}

// Preflight decides what ends a leased message before any delivery: it has expired, it was claimed too often without an
// outcome, or it has no attempt left (its policy was changed). When ok is false it is to be delivered. It is asked at
// the instant of delivery; m.Claims counts the present claim.
func Preflight(m *store.Message, now time.Time) (s store.Settlement, ok bool) {
	r := effective(m.Retry)
	switch {
	case !m.ExpiresAt.IsZero() && !now.Before(m.ExpiresAt):
		return finished(m, store.OutcomeBury, now, "expired"), true
	case r.MaxAttempts > 0 && m.Attempts >= r.MaxAttempts:
		return finished(m, store.OutcomeBury, now, orElse(m.LastError, "no attempts left")), true
	case overclaimed(r, m.Claims, m.Attempts):
		return finished(m, store.OutcomeBury, now, lapses(m.Claims-1, m.Attempts)), true
	default:
		return store.Settlement{}, false
	}
}

// Settle decides how a lease ends after a delivery.
//
// Delivered is done; Permanent is dead; Snooze is given back uncounted until now + after, or until it expires if that is
// sooner, and keeps its last error. Any other error is a failed attempt and tried again, unless attempts or claims are
// used up, or the next attempt would come after the policy's MaxAge or not before ExpiresAt: then the message is dead
// now and keeps the error, with the reason when it is not the attempts. The delay a target asks for replaces the
// backoff, shorter or longer, up to RetryAfterMax; the policy's Max and jitter do not apply to it. A message with a stop
// mark that was not delivered ends as Interrupted.
func Settle(m *store.Message, r Result, now time.Time, random func() float64) store.Settlement {
	v := judge(r.Err)
	switch {
	case v.kind == target.Delivered:
		return counted(finished(m, store.OutcomeDone, now, ""), m, r, v, now)
	case m.Stop:
		return Interrupted(m, r, now)
	case v.kind == target.Bury:
		return counted(finished(m, store.OutcomeBury, now, v.text), m, r, v, now)
	case v.kind == target.Postpone:
		return released(m, snoozedUntil(m, after(now, v.after)))
	default:
		return counted(failed(m, v, now, random), m, r, v, now)
	}
}

// Interrupted ends a lease whose holder was asked to stop: the message is canceled, whatever error its delivery ended
// with. A delivery that had begun is recorded as an attempt; one that succeeded all the same is done, because the outcome
// came first. Of a message that was not started (a zero Result) nothing is recorded.
func Interrupted(m *store.Message, r Result, now time.Time) store.Settlement {
	if r.StartedAt.IsZero() {
		return finished(m, store.OutcomeCancel, now, m.LastError)
	}
	v := judge(r.Err)
	if v.kind == target.Delivered {
		return counted(finished(m, store.OutcomeDone, now, ""), m, r, v, now)
	}
	return counted(finished(m, store.OutcomeCancel, now, v.text), m, r, v, now)
}

// Unstarted gives a lease back that was not worked on: at its own instant, or at `at` when that is later; a zero `at`
// asks for no delay. The claim is uncounted and the last error stays.
func Unstarted(m *store.Message, at time.Time) store.Settlement {
	return released(m, store.Later(m.DueAt, at))
}

// failed decides about a failed attempt, the one that makes m.Attempts one more.
func failed(m *store.Message, v verdict, now time.Time, random func() float64) store.Settlement {
	r, n := effective(m.Retry), m.Attempts+1
	bury := func(reason string) store.Settlement {
		return finished(m, store.OutcomeBury, now, withReason(v.text, reason))
	}
	if r.MaxAttempts > 0 && n >= r.MaxAttempts {
		return bury("")
	}
	if overclaimed(r, m.Claims+1, n) {
		return bury(lapses(m.Claims, n))
	}
	next := after(now, retryDelay(r, n, v, random))
	switch {
	case r.MaxAge > 0 && next.Sub(m.FireAt) > r.MaxAge:
		return bury(fmt.Sprintf("next retry is later than %v after its instant", r.MaxAge))
	case !m.ExpiresAt.IsZero() && !next.Before(m.ExpiresAt):
		return bury("expired before the next retry")
	default:
		return store.Settlement{Token: m.Token(), Outcome: store.OutcomeRetry, At: next, Error: v.text}
	}
}

// retryDelay returns the delay a target asked for, within the policy's cap, or the policy's own.
func retryDelay(r store.Retry, n int, v verdict, random func() float64) time.Duration {
	if !v.asked {
		return Delay(r, n, random)
	}
	limit := r.RetryAfterMax
	if limit <= 0 {
		limit = defaultRetryAfterMax
	}
	return min(max(v.after, 0), limit)
}

// released gives a message back at an instant.
func released(m *store.Message, at time.Time) store.Settlement {
	return store.Settlement{Token: m.Token(), Outcome: store.OutcomeRelease, At: store.Ceil(at), Error: m.LastError}
}

// snoozedUntil cuts a snooze at the instant at which the message expires, so that it is buried then and not later.
func snoozedUntil(m *store.Message, at time.Time) time.Time {
	if m.ExpiresAt.IsZero() {
		return at
	}
	return store.Earlier(at, m.ExpiresAt)
}

// finished ends a message.
func finished(m *store.Message, outcome store.Outcome, now time.Time, text string) store.Settlement {
	return store.Settlement{Token: m.Token(), Outcome: outcome, PurgeAt: Finish(m, outcome, now), Error: text}
}

// counted adds the record of the delivery, which makes it an attempt.
func counted(s store.Settlement, m *store.Message, r Result, v verdict, now time.Time) store.Settlement {
	started := r.StartedAt
	if started.IsZero() {
		started = now
	}
	s.Attempt = &store.Attempt{
		Number:    m.Attempts + 1,
		StartedAt: store.Floor(started),
		Duration:  max(r.Duration, 0),
		Error:     v.text,
		Status:    r.Status,
		Response:  bytes.Clone(r.Response[:min(len(r.Response), maxResponse)]),
		Owner:     r.Owner,
	}
	return s
}

// lapses tells why a message was claimed too often.
func lapses(claims, attempts int) string {
	if n := claims - attempts; n > 0 {
		return fmt.Sprintf("lease expired %d times", n)
	}
	return fmt.Sprintf("claimed %d times", claims)
}

// after returns the first whole millisecond that is not before now + d, at most Never.
func after(now time.Time, d time.Duration) time.Time {
	return store.Earlier(store.Ceil(now.Add(d)), store.Never)
}
