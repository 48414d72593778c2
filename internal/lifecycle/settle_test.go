package lifecycle_test

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/belfryhq/belfry/internal/lifecycle"
	"github.com/belfryhq/belfry/store"
	"github.com/belfryhq/belfry/target"
)

var (
	noon    = time.Date(2026, 10, 5, 12, 0, 0, 0, time.UTC)
	errDown = errors.New("HTTP 500")
)

// half is a random source that always returns the middle.
func half() float64 { return 0.5 }

// leased returns a message in its first claim, due at noon, with five attempts a minute apart.
func leased(change func(m *store.Message)) *store.Message {
	m := &store.Message{
		Queue: "q", ID: "m", State: store.Leased, Version: 7, Claims: 1, FireAt: noon, DueAt: noon,
		Retry:     store.Retry{MaxAttempts: 5, Backoff: store.Fixed, Base: time.Minute},
		Retention: store.Retention{Done: time.Hour, Dead: 24 * time.Hour},
	}
	if change != nil {
		change(m)
	}
	return m
}

// nilError is an error whose methods panic on the nil pointer.
type nilError struct{ text string }

func (e *nilError) Error() string { return e.text }

func TestSettle(t *testing.T) {
	retryAfter := func(d time.Duration) error { return fmt.Errorf("post: %w", target.RetryAfter(errDown, d)) }
	for _, c := range []struct {
		rule    string
		change  func(m *store.Message)
		err     error
		outcome store.Outcome
		at      time.Duration // from noon
		text    string
		counted bool
	}{
		{"delivered is done without an error", func(m *store.Message) { m.LastError = "old" }, nil, store.OutcomeDone, 0, "", true},
		{"a plain error is tried again after the backoff", nil, errDown, store.OutcomeRetry, time.Minute, "HTTP 500", true},
		{"the last attempt's error is final", func(m *store.Message) { m.Attempts = 4 }, errDown, store.OutcomeBury, 0, "HTTP 500", true},
		{"more attempts than allowed are final too", func(m *store.Message) { m.Attempts = 9 }, errDown, store.OutcomeBury, 0, "HTTP 500", true},
		{"an attempt before the last is not final", func(m *store.Message) { m.Attempts = 3 }, errDown, store.OutcomeRetry, time.Minute, "HTTP 500", true},
		{"negative attempts have no limit", func(m *store.Message) { m.Attempts, m.Claims, m.Retry.MaxAttempts = 1e6, 1e6+1, -1 },
			errDown, store.OutcomeRetry, time.Minute, "HTTP 500", true},
		{"zero attempts mean the default", func(m *store.Message) { m.Attempts, m.Claims, m.Retry.MaxAttempts = 24, 25, 0 },
			errDown, store.OutcomeBury, 0, "HTTP 500", true},
		{"a policy without any field means the default", func(m *store.Message) { m.Retry = store.Retry{} },
			errDown, store.OutcomeRetry, 950 * time.Millisecond, "HTTP 500", true},
		{"permanent is final", nil, target.Permanent(errDown), store.OutcomeBury, 0, "HTTP 500", true},
		{"what a target asks for replaces a longer backoff", nil, retryAfter(5 * time.Second), store.OutcomeRetry, 5 * time.Second, "post: HTTP 500", true},
		{"what a target asks for replaces a shorter backoff", nil, retryAfter(time.Hour), store.OutcomeRetry, time.Hour, "post: HTTP 500", true},
		{"what a target asks for may be no delay", nil, retryAfter(0), store.OutcomeRetry, 0, "post: HTTP 500", true},
		{"the policy's cap bounds no asked delay", func(m *store.Message) { m.Retry.Max = time.Minute },
			retryAfter(time.Hour), store.OutcomeRetry, time.Hour, "post: HTTP 500", true},
		{"an asked delay is at most a day by default", nil, retryAfter(300 * 24 * time.Hour), store.OutcomeRetry, 24 * time.Hour, "post: HTTP 500", true},
		{"an asked delay has a cap of its own", func(m *store.Message) { m.Retry.RetryAfterMax = 10 * time.Minute },
			retryAfter(time.Hour), store.OutcomeRetry, 10 * time.Minute, "post: HTTP 500", true},
		{"an asked delay gives no further attempt", func(m *store.Message) { m.Attempts = 4 },
			retryAfter(time.Second), store.OutcomeBury, 0, "post: HTTP 500", true},
		{"a snooze is uncounted and keeps the last error", func(m *store.Message) { m.LastError = "old" },
			target.Snooze(time.Hour), store.OutcomeRelease, time.Hour, "old", false},
		{"a snooze does not end the last attempt", func(m *store.Message) { m.Attempts = 4 },
			target.Snooze(time.Hour), store.OutcomeRelease, time.Hour, "", false},
		{"a snooze beyond the expiry ends at it", func(m *store.Message) { m.ExpiresAt = noon.Add(time.Minute) },
			target.Snooze(time.Hour), store.OutcomeRelease, time.Minute, "", false},
		{"a snooze before the expiry is not cut", func(m *store.Message) { m.ExpiresAt = noon.Add(2 * time.Hour) },
			target.Snooze(time.Hour), store.OutcomeRelease, time.Hour, "", false},
		{"a retry at the age limit is allowed", func(m *store.Message) { m.FireAt, m.Retry.MaxAge = noon.Add(-time.Hour), time.Hour+time.Minute },
			errDown, store.OutcomeRetry, time.Minute, "HTTP 500", true},
		{"a retry beyond the age limit is none", func(m *store.Message) { m.FireAt, m.Retry.MaxAge = noon.Add(-time.Hour), time.Hour },
			errDown, store.OutcomeBury, 0, "HTTP 500; next retry is later than 1h0m0s after its instant", true},
		{"an age of -1 is no limit", func(m *store.Message) { m.FireAt, m.Retry.MaxAge = noon.Add(-time.Hour), -1 },
			errDown, store.OutcomeRetry, time.Minute, "HTTP 500", true},
		{"a retry at the expiry is none", func(m *store.Message) { m.ExpiresAt = noon.Add(time.Minute) },
			errDown, store.OutcomeBury, 0, "HTTP 500; expired before the next retry", true},
		{"a retry before the expiry is allowed", func(m *store.Message) { m.ExpiresAt = noon.Add(time.Minute + time.Millisecond) },
			errDown, store.OutcomeRetry, time.Minute, "HTTP 500", true},
		{"no retry is asked for that has no claim left", func(m *store.Message) { m.Claims = 9 },
			errDown, store.OutcomeBury, 0, "HTTP 500; lease expired 8 times", true},
		{"the last claim but one may be used", func(m *store.Message) { m.Claims = 8 },
			errDown, store.OutcomeRetry, time.Minute, "HTTP 500", true},
		{"a stop mark ends what would be tried again", func(m *store.Message) { m.Stop = true },
			errDown, store.OutcomeCancel, 0, "HTTP 500", true},
		{"a stop mark ends what is snoozed", func(m *store.Message) { m.Stop = true },
			target.Snooze(time.Hour), store.OutcomeCancel, 0, "snoozed for 1h0m0s", true},
		{"a delivery that succeeded before the stop is done", func(m *store.Message) { m.Stop = true }, nil, store.OutcomeDone, 0, "", true},
		{"an error without text has one", nil, errors.New(""), store.OutcomeRetry, time.Minute, "an error without text", true},
		{"an error whose methods panic is a plain failure", nil, (*nilError)(nil), store.OutcomeRetry, time.Minute, "an error whose text cannot be read", true},
	} {
		t.Run(c.rule, func(t *testing.T) {
			m := leased(c.change)
			s := lifecycle.Settle(m, lifecycle.Result{Err: c.err, StartedAt: noon.Add(-time.Second)}, noon, half)
			if s.Token != m.Token() || s.Outcome != c.outcome || s.Error != c.text || (s.Attempt != nil) != c.counted {
				t.Errorf("got %+v", s)
			}
			if live := !c.outcome.State().Finished(); live != s.PurgeAt.IsZero() || live && !s.At.Equal(noon.Add(c.at)) {
				t.Errorf("at %v, purge at %v", s.At, s.PurgeAt)
			}
		})
	}
}

func TestAnAttemptIsRecordedWhole(t *testing.T) {
	m := leased(func(m *store.Message) { m.Attempts = 2 })
	response := []byte(strings.Repeat("r", 16<<10+1))
	s := lifecycle.Settle(m, lifecycle.Result{
		Err: errDown, StartedAt: noon.Add(-1500 * time.Microsecond).Local(), Duration: 1234567, Status: 500, Response: response, Owner: "node",
	}, noon, half)
	want := &store.Attempt{Number: 3, StartedAt: noon.Add(-2 * time.Millisecond), Duration: 1234567, Error: "HTTP 500", Status: 500,
		Response: response[:16<<10], Owner: "node"}
	if !reflect.DeepEqual(s.Attempt, want) {
		t.Errorf("got %+v", s.Attempt)
	}
	response[0] = 'x'
	if s.Attempt.Response[0] != 'r' {
		t.Error("the record shares the target's buffer")
	}
}

func TestASuccessIsRecordedWithoutAnError(t *testing.T) {
	s := lifecycle.Settle(leased(nil), lifecycle.Result{StartedAt: noon, Status: 204}, noon, half)
	if a := s.Attempt; a == nil || a.Error != "" || a.Status != 204 || a.Number != 1 || a.Response != nil {
		t.Errorf("got %+v", a)
	}
}

func TestErrorTextsAreFitToBeStored(t *testing.T) {
	for _, c := range []struct{ rule, text, want string }{
		{"NUL is removed", "a\x00b", "ab"},
		{"invalid bytes are replaced", "a\xffb", "a\uFFFDb"},
		{"up to 2 KiB are kept", strings.Repeat("x", 2048), strings.Repeat("x", 2048)},
		{"more is cut", strings.Repeat("x", 2049), strings.Repeat("x", 2048)},
		{"no character is split", strings.Repeat("x", 2046) + "€", strings.Repeat("x", 2046)},
		{"a character that just fits stays", strings.Repeat("x", 2045) + "€y", strings.Repeat("x", 2045) + "€"},
		{"replacements count", strings.Repeat("\xff\x00", 900) + strings.Repeat("x", 900), "\uFFFD" + strings.Repeat("x", 248)},
	} {
		t.Run(c.rule, func(t *testing.T) {
			s := lifecycle.Settle(leased(nil), lifecycle.Result{Err: errors.New(c.text), StartedAt: noon}, noon, half)
			if s.Error != c.want || s.Attempt.Error != c.want {
				t.Errorf("got %d bytes %.60q, want %d bytes", len(s.Error), s.Error, len(c.want))
			}
		})
	}
	t.Run("a reason is kept at the end of a long text", func(t *testing.T) {
		m := leased(func(m *store.Message) { m.ExpiresAt = noon })
		s := lifecycle.Settle(m, lifecycle.Result{Err: errors.New(strings.Repeat("€", 1000)), StartedAt: noon}, noon, half)
		if !strings.HasSuffix(s.Error, "€; expired before the next retry") || len(s.Error) > 2048 || len(s.Error) < 2040 {
			t.Errorf("%d bytes, ending %q", len(s.Error), s.Error[len(s.Error)-40:])
		}
	})
}

func TestRetryInstantsAreRoundedUp(t *testing.T) {
	m := leased(func(m *store.Message) { m.Retry.Base = 1 })
	for rule, err := range map[string]error{"retry": errDown, "snooze": target.Snooze(1), "asked": target.RetryAfter(errDown, 1)} {
		if s := lifecycle.Settle(m, lifecycle.Result{Err: err, StartedAt: noon}, noon, half); !s.At.Equal(noon.Add(time.Millisecond)) {
			t.Errorf("%s at %v", rule, s.At)
		}
	}
}

func TestPreflight(t *testing.T) {
	for _, c := range []struct {
		rule   string
		change func(m *store.Message)
		text   string // empty: deliver
	}{
		{"a message in its first claim is delivered", nil, ""},
		{"a message is dead at its expiry", func(m *store.Message) { m.ExpiresAt = noon }, "expired"},
		{"a message is delivered before its expiry", func(m *store.Message) { m.ExpiresAt = noon.Add(time.Millisecond) }, ""},
		{"a single attempt survives four crashes", func(m *store.Message) { m.Retry.MaxAttempts, m.Claims = 1, 5 }, ""},
		{"a single attempt does not survive five", func(m *store.Message) { m.Retry.MaxAttempts, m.Claims = 1, 6 }, "lease expired 5 times"},
		{"attempts add to the claims", func(m *store.Message) { m.Attempts, m.Claims = 4, 9 }, ""},
		{"only lapsed leases are told", func(m *store.Message) { m.Attempts, m.Claims = 4, 10 }, "lease expired 5 times"},
		{"a bound of claims of its own holds", func(m *store.Message) { m.Retry.MaxClaims, m.Claims = 7, 8 }, "lease expired 7 times"},
		{"up to a bound of its own it is delivered", func(m *store.Message) { m.Retry.MaxClaims, m.Claims = 20, 20 }, ""},
		{"claims without lapses are told as such", func(m *store.Message) { m.Retry.MaxClaims, m.Attempts, m.Claims = 2, 2, 3 }, "claimed 2 times"},
		{"unlimited attempts bound the lapses", func(m *store.Message) { m.Retry.MaxAttempts, m.Attempts, m.Claims = -1, 1000, 1029 }, ""},
		{"unlimited attempts end after 29 lapses", func(m *store.Message) { m.Retry.MaxAttempts, m.Attempts, m.Claims = -1, 1000, 1030 }, "lease expired 29 times"},
		{"a huge number of attempts does not overflow", func(m *store.Message) { m.Retry.MaxAttempts, m.Claims = math.MaxInt, 1e9 }, ""},
		{"no attempt left: the last error stays", func(m *store.Message) { m.Attempts, m.LastError = 5, "HTTP 500" }, "HTTP 500"},
		{"no attempt left and no error", func(m *store.Message) { m.Attempts = 5 }, "no attempts left"},
		{"the default policy's claims are bounded", func(m *store.Message) { m.Retry, m.Claims = store.Retry{}, 30 }, "lease expired 29 times"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			m := leased(c.change)
			s, ended := lifecycle.Preflight(m, noon)
			switch {
			case ended != (c.text != ""):
				t.Errorf("ended %v: %+v", ended, s)
			case ended && (s.Outcome != store.OutcomeBury || s.Error != c.text || s.Token != m.Token() || s.Attempt != nil ||
				!s.PurgeAt.Equal(noon.Add(24*time.Hour))):
				t.Errorf("got %+v", s)
			}
		})
	}
}

func TestUnstartedGoesBackAtTheLaterInstant(t *testing.T) {
	m := leased(func(m *store.Message) { m.LastError = "old" })
	for _, c := range []struct{ at, want time.Time }{
		{time.Time{}, noon}, {noon.Add(-time.Hour), noon}, {noon.Add(time.Hour + 1), noon.Add(time.Hour + time.Millisecond)},
	} {
		s := lifecycle.Unstarted(m, c.at)
		if s.Outcome != store.OutcomeRelease || !s.At.Equal(c.want) || s.Error != "old" || s.Attempt != nil || s.Token != m.Token() {
			t.Errorf("at %v: got %+v", c.at, s)
		}
	}
}

func TestInterrupted(t *testing.T) {
	for _, c := range []struct {
		rule    string
		result  lifecycle.Result
		outcome store.Outcome
		text    string
		counted bool
	}{
		{"what was not started is canceled without a record", lifecycle.Result{}, store.OutcomeCancel, "old", false},
		{"what was cut off is canceled and recorded", lifecycle.Result{Err: errDown, StartedAt: noon}, store.OutcomeCancel, "HTTP 500", true},
		{"a permanent error does not make it dead", lifecycle.Result{Err: target.Permanent(errDown), StartedAt: noon}, store.OutcomeCancel, "HTTP 500", true},
		{"what succeeded is done", lifecycle.Result{StartedAt: noon}, store.OutcomeDone, "", true},
	} {
		t.Run(c.rule, func(t *testing.T) {
			s := lifecycle.Interrupted(leased(func(m *store.Message) { m.LastError = "old" }), c.result, noon)
			if s.Outcome != c.outcome || s.Error != c.text || (s.Attempt != nil) != c.counted || !s.PurgeAt.Equal(noon.Add(time.Hour)) {
				t.Errorf("got %+v", s)
			}
		})
	}
}
