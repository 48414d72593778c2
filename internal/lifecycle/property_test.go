package lifecycle_test

import (
	"errors"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/belfryhq/belfry/internal/lifecycle"
	"github.com/belfryhq/belfry/store"
	"github.com/belfryhq/belfry/target"
)

var (
	unit     = rapid.Float64Range(0, 1)
	duration = rapid.OneOf(rapid.Int64Range(0, int64(time.Hour)), rapid.Int64Range(0, int64(decade)), rapid.Just(int64(0)))
	instants = rapid.Custom(func(t *rapid.T) time.Time { // around noon, to the nanosecond
		return noon.Add(time.Duration(rapid.Int64Range(-int64(48*time.Hour), int64(48*time.Hour)).Draw(t, "offset")))
	})
	wholes = rapid.Custom(func(t *rapid.T) time.Time { return store.Ceil(instants.Draw(t, "instant")) })
)

// maybe draws from a generator or leaves the zero value.
func maybe[T any](g *rapid.Generator[T]) *rapid.Generator[T] {
	var zero T
	return rapid.OneOf(rapid.Just(zero), g)
}

// policies draws valid policies, resolved or not.
var policies = rapid.Custom(func(t *rapid.T) store.Retry {
	d := func(name string) time.Duration { return time.Duration(duration.Draw(t, name)) }
	r := store.Retry{
		MaxAttempts: rapid.OneOf(rapid.IntRange(-1, 40), rapid.Just(math.MaxInt)).Draw(t, "attempts"),
		MaxAge:      d("age"), Base: d("base"), Max: d("max"), RetryAfterMax: d("retry after max"),
		Factor:  maybe(rapid.Float64Range(1, 1e9)).Draw(t, "factor"),
		Jitter:  rapid.OneOf(unit, rapid.Just(-1.0)).Draw(t, "jitter"),
		Backoff: rapid.SampledFrom([]store.Backoff{"", store.Exponential, store.Linear, store.Fixed, store.List}).Draw(t, "backoff"),
	}
	if r.Backoff == store.List {
		for _, ns := range rapid.SliceOfN(duration, 1, 4).Draw(t, "delays") {
			r.Delays = append(r.Delays, time.Duration(ns))
		}
	}
	if r.MaxAttempts < math.MaxInt && rapid.Bool().Draw(t, "has claims") {
		r.MaxClaims = max(r.MaxAttempts, 1) + rapid.IntRange(0, 9).Draw(t, "claims")
	}
	return r
})

var messages = rapid.Custom(func(t *rapid.T) store.Message {
	attempts := rapid.IntRange(0, 50).Draw(t, "attempts so far")
	return store.Message{
		Queue: "q", ID: "m", State: store.Leased, Version: 7, LastError: "old",
		FireAt: wholes.Draw(t, "fire at"), DueAt: wholes.Draw(t, "due at"), ExpiresAt: maybe(wholes).Draw(t, "expires at"),
		DedupUntil: maybe(wholes).Draw(t, "dedup until"), Stop: rapid.Bool().Draw(t, "stop"),
		Retry: rapid.OneOf(policies, rapid.Just(store.Retry{})).Draw(t, "retry"), Attempts: attempts,
		Claims: attempts + rapid.IntRange(1, 40).Draw(t, "lapses and this claim"),
		Retention: store.Retention{
			Done: time.Duration(maybe(rapid.Int64Range(-1, int64(decade))).Draw(t, "keep done")),
			Dead: time.Duration(maybe(rapid.Int64Range(-1, int64(decade))).Draw(t, "keep dead")),
		},
	}
})

var verdicts = rapid.Custom(func(t *rapid.T) error {
	after := time.Duration(rapid.Int64().Draw(t, "after"))
	text := string(rapid.SliceOfN(rapid.Byte(), 0, 3000).Draw(t, "text"))
	return rapid.SampledFrom([]error{
		nil, errors.New(text), target.Permanent(errors.New(text)), target.RetryAfter(errors.New(text), after), target.Snooze(after),
	}).Draw(t, "verdict")
})

var results = rapid.Custom(func(t *rapid.T) lifecycle.Result {
	return lifecycle.Result{
		Err: verdicts.Draw(t, "err"), StartedAt: maybe(instants).Draw(t, "started"),
		Duration: time.Duration(rapid.Int64().Draw(t, "duration")), Status: rapid.Int().Draw(t, "status"),
		Response: slices.Repeat([]byte{1}, rapid.SampledFrom([]int{0, 1, 16 << 10, 16<<10 + 1}).Draw(t, "response")),
	}
})

// settlement draws a settlement of any kind together with what it was made from.
func settlement(t *rapid.T, m *store.Message, r lifecycle.Result, now time.Time, u float64) store.Settlement {
	random := func() float64 { return u }
	switch rapid.SampledFrom([]string{"settle", "settle", "settle", "preflight", "unstarted", "interrupted"}).Draw(t, "decision") {
	case "preflight":
		if s, ok := lifecycle.Preflight(m, now); ok {
			return s
		}
		return lifecycle.Unstarted(m, now)
	case "unstarted":
		return lifecycle.Unstarted(m, now)
	case "interrupted":
		return lifecycle.Interrupted(m, r, now)
	default:
		return lifecycle.Settle(m, r, now, random)
	}
}

func TestEverySettlementIsFitToBeStored(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, r, now, u := messages.Draw(t, "message"), results.Draw(t, "result"), instants.Draw(t, "now"), unit.Draw(t, "random")
		before, response := m, slices.Clone(r.Response)
		s := settlement(t, &m, r, now, u)
		if !reflect.DeepEqual(m, before) || !slices.Equal(r.Response, response) {
			t.Fatal("an input was modified")
		}
		if s.Token != m.Token() {
			t.Fatalf("token %v", s.Token)
		}
		finished := s.Outcome.State().Finished()
		if finished == s.PurgeAt.IsZero() || finished != s.At.IsZero() {
			t.Fatalf("%v: at %v, purge at %v", s.Outcome.State(), s.At, s.PurgeAt)
		}
		if finished && s.PurgeAt.Before(m.DedupUntil) {
			t.Fatalf("purged at %v, before the dedup key is free at %v", s.PurgeAt, m.DedupUntil)
		}
		instants := []time.Time{s.At, s.PurgeAt}
		if s.Attempt != nil {
			instants = append(instants, s.Attempt.StartedAt)
			if s.Attempt.Number != m.Attempts+1 || s.Attempt.Duration < 0 || len(s.Attempt.Response) > 16<<10 {
				t.Fatalf("attempt %+v", s.Attempt)
			}
			storable(t, s.Attempt.Error)
		}
		storable(t, s.Error)
		for _, at := range instants {
			if !at.Equal(store.Ceil(at)) || at.Location() != time.UTC || at.After(store.Never) {
				t.Fatalf("instant %v", at)
			}
		}
	})
}

func storable(t *rapid.T, text string) {
	if len(text) > 2048 || !utf8.ValidString(text) || slices.Contains([]byte(text), 0) {
		t.Fatalf("text of %d bytes: %q", len(text), text)
	}
}

func TestTheSameInputGivesTheSameOutput(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, r, now, u := messages.Draw(t, "message"), results.Draw(t, "result"), instants.Draw(t, "now"), unit.Draw(t, "random")
		settle := func() store.Settlement {
			return lifecycle.Settle(&m, r, now, func() float64 { return u })
		}
		if a, b := settle(), settle(); !reflect.DeepEqual(a, b) {
			t.Fatalf("\n%+v\n%+v", a, b)
		}
	})
}

func TestNothingIsRetriedEarlyOrBeyondItsLimits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, r, now, u := messages.Draw(t, "message"), results.Draw(t, "result"), instants.Draw(t, "now"), unit.Draw(t, "random")
		s := lifecycle.Settle(&m, r, now, func() float64 { return u })
		if s.Outcome != store.OutcomeRetry {
			return
		}
		p := m.Retry
		switch {
		case s.At.Before(now):
			t.Fatalf("at %v, before now %v", s.At, now)
		case s.Attempt == nil:
			t.Fatal("a retry without an attempt")
		case !m.ExpiresAt.IsZero() && !s.At.Before(m.ExpiresAt):
			t.Fatalf("at %v, expires at %v", s.At, m.ExpiresAt)
		case p.MaxAge > 0 && s.At.Sub(m.FireAt) > p.MaxAge:
			t.Fatalf("at %v, %v after %v", s.At, s.At.Sub(m.FireAt), m.FireAt)
		case m.Stop:
			t.Fatal("retried in spite of a stop mark")
		}
		if _, after, asked := target.Judge(r.Err); asked {
			limit := p.RetryAfterMax
			if limit == 0 {
				limit = 24 * time.Hour
			}
			if want := store.Ceil(now.Add(min(after, limit))); !s.At.Equal(want) {
				t.Fatalf("at %v, asked for %v", s.At, want)
			}
		}
		// The next claim may be used.
		next := m
		next.Attempts, next.Claims = m.Attempts+1, m.Claims+1
		if s, ended := lifecycle.Preflight(&next, s.At); ended {
			t.Fatalf("the retry will not be delivered: %s", s.Error)
		}
	})
}

// TestDeliveriesAreBounded runs a message through claims of which each crashes or fails, until it is dead.
func TestDeliveriesAreBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := store.Message{Queue: "q", ID: "m", State: store.Leased, FireAt: noon, DueAt: noon, Retry: policies.Draw(t, "retry")}
		m.Retry.MaxAge = 0
		m.Retry.MaxAttempts = min(m.Retry.MaxAttempts, 40)
		attempts := m.Retry.MaxAttempts
		if attempts == 0 {
			attempts = lifecycle.Default.MaxAttempts
		}
		claims := m.Retry.MaxClaims
		if claims == 0 {
			claims = attempts + 4
		}
		onlyCrashes := attempts < 0 || rapid.Bool().Draw(t, "only crashes")
		if attempts < 0 && m.Retry.MaxClaims == 0 {
			claims = lifecycle.Default.MaxAttempts + 4
		}
		now, deliveries := noon, 0
		for deliveries <= 1000 {
			m.Claims++
			if _, ended := lifecycle.Preflight(&m, now); ended {
				break
			}
			deliveries++
			if onlyCrashes || rapid.Bool().Draw(t, "crash") {
				continue
			}
			s := lifecycle.Settle(&m, lifecycle.Result{Err: errDown, StartedAt: now}, now, half)
			m.Attempts++
			if s.Outcome == store.OutcomeBury {
				break
			}
			now = s.At
		}
		if deliveries > claims || attempts > 0 && m.Attempts > attempts {
			t.Fatalf("%d deliveries with %d attempts, bounds %d and %d", deliveries, m.Attempts, claims, attempts)
		}
		if (onlyCrashes || m.Attempts == 0) && deliveries != claims {
			t.Fatalf("%d deliveries that all crashed, want %d", deliveries, claims)
		}
	})
}

func TestDelaysStayWithinTheirBoundsAndGrow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, n, u := policies.Draw(t, "retry"), rapid.Int().Draw(t, "n"), unit.Draw(t, "random")
		full := r
		full.Jitter = -1
		d, most := lifecycle.Delay(r, n, func() float64 { return u }), lifecycle.Delay(full, n, half)
		limit := decade
		if r.Max > 0 {
			limit = min(limit, r.Max)
		}
		least := most
		if r.Jitter > 0 {
			least = time.Duration(float64(most)*(1-r.Jitter)) - time.Microsecond
		}
		if d < 0 || d < least || d > most || most > limit {
			t.Fatalf("delay %v, want %v to %v, at most %v", d, least, most, limit)
		}
		if r.Backoff != store.List && n < math.MaxInt {
			if next := lifecycle.Delay(full, n+1, half); next < most {
				t.Fatalf("after %v comes %v", most, next)
			}
		}
	})
}

func TestResolvedPoliciesAreValidAndStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, fallback := maybe(policies).Draw(t, "retry"), maybe(policies).Draw(t, "fallback")
		once := lifecycle.Resolve(r, fallback)
		if err := lifecycle.Validate(once); err != nil {
			t.Fatalf("%+v: %v", once, err)
		}
		if twice := lifecycle.Resolve(once, fallback); !reflect.DeepEqual(once, twice) {
			t.Fatalf("\nonce  %+v\ntwice %+v", once, twice)
		}
	})
}
