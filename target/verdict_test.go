package target_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/belfryhq/belfry/target"
)

func TestJudgeFindsTheVerdict(t *testing.T) {
	t.Parallel()
	plain := errors.New("HTTP 500")
	permanent := target.Permanent(plain)
	later := target.RetryAfter(plain, time.Minute)
	snooze := target.Snooze(time.Hour)
	tests := []struct {
		name    string
		err     error
		verdict target.Verdict
		after   time.Duration
		asked   bool
	}{
		{"nil is delivered", nil, target.Delivered, 0, false},
		{"a plain error is tried again by the policy", plain, target.Retry, 0, false},
		{"a permanent error is buried", permanent, target.Bury, 0, false},
		{"a delay that was asked for is told", later, target.Retry, time.Minute, true},
		{"a delay of zero was asked for too", target.RetryAfter(plain, 0), target.Retry, 0, true},
		{"a negative delay counts as zero", target.RetryAfter(plain, -time.Second), target.Retry, 0, true},
		{"a snooze is postponed", snooze, target.Postpone, time.Hour, true},
		{"a negative snooze counts as zero", target.Snooze(-time.Second), target.Postpone, 0, true},
		{"a wrapped verdict is found", fmt.Errorf("deliver: %w", fmt.Errorf("post: %w", permanent)), target.Bury, 0, false},
		{"a wrapped snooze is found", fmt.Errorf("deliver: %w", snooze), target.Postpone, time.Hour, true},
		{"the outermost of two verdicts counts", target.Permanent(later), target.Bury, 0, false},
		{"the outermost counts the other way round", target.RetryAfter(permanent, time.Second), target.Retry, time.Second, true},
		{"a verdict joined behind a plain error is found", errors.Join(plain, permanent), target.Bury, 0, false},
		{"of joined verdicts the first counts", errors.Join(plain, later, permanent), target.Retry, time.Minute, true},
		{"an error with two wrapped ones is looked through", fmt.Errorf("%w after %w", plain, snooze), target.Postpone, time.Hour, true},
		{"a join below a wrapping is looked through", fmt.Errorf("deliver: %w", errors.Join(plain, permanent)), target.Bury, 0, false},
		{"a join of joins is looked through", errors.Join(errors.Join(plain), errors.Join(plain, permanent)), target.Bury, 0, false},
		{"joined plain errors stay plain", errors.Join(plain, plain), target.Retry, 0, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			verdict, after, asked := target.Judge(tt.err)
			if verdict != tt.verdict || after != tt.after || asked != tt.asked {
				t.Errorf("Judge = %d, %v, %t; want %d, %v, %t", verdict, after, asked, tt.verdict, tt.after, tt.asked)
			}
		})
	}
}

func TestMarkingNoErrorGivesNoError(t *testing.T) {
	t.Parallel()
	if err := target.Permanent(nil); err != nil {
		t.Errorf("Permanent(nil) = %v", err)
	}
	if err := target.RetryAfter(nil, time.Second); err != nil {
		t.Errorf("RetryAfter(nil) = %v", err)
	}
}

func TestVerdictsKeepTheErrorTheyMark(t *testing.T) {
	t.Parallel()
	cause := errors.New("connection refused")
	for _, err := range []error{target.Permanent(cause), target.RetryAfter(cause, time.Second)} {
		if !errors.Is(err, cause) || err.Error() != cause.Error() {
			t.Errorf("%T: %q does not keep its error", err, err)
		}
	}
	if got := target.Snooze(90 * time.Second).Error(); got != "snoozed for 1m30s" {
		t.Errorf("Snooze reads %q", got)
	}
}
