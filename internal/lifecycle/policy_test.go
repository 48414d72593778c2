package lifecycle_test

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/belfryhq/belfry/internal/lifecycle"
	"github.com/belfryhq/belfry/store"
)

const decade = 10 * 365 * 24 * time.Hour

func TestDelay(t *testing.T) {
	for _, c := range []struct {
		rule  string
		retry store.Retry
		n     int
		want  time.Duration
	}{
		{"exponential begins with the base", store.Retry{Backoff: store.Exponential, Base: 3 * time.Second}, 1, 3 * time.Second},
		{"exponential doubles", store.Retry{Backoff: store.Exponential, Base: 3 * time.Second}, 4, 24 * time.Second},
		{"exponential grows by its factor", store.Retry{Base: time.Second, Factor: 1.5}, 3, 2250 * time.Millisecond},
		{"no backoff means exponential", store.Retry{Base: time.Second}, 3, 4 * time.Second},
		{"linear is a multiple", store.Retry{Backoff: store.Linear, Base: 3 * time.Second}, 5, 15 * time.Second},
		{"fixed stays", store.Retry{Backoff: store.Fixed, Base: 3 * time.Second}, 500, 3 * time.Second},
		{"a list is read in order", store.Retry{Backoff: store.List, Delays: []time.Duration{1, 5, 9}}, 2, 5},
		{"a list's last delay repeats", store.Retry{Backoff: store.List, Delays: []time.Duration{1, 5, 9}}, 99, 9},
		{"a list may say at once", store.Retry{Backoff: store.List, Delays: []time.Duration{0, 5}}, 1, 0},
		{"delays without a backoff are a list", store.Retry{Delays: []time.Duration{1, 5, 9}}, 3, 9},
		{"a list without delays is fixed", store.Retry{Backoff: store.List, Base: time.Minute}, 3, time.Minute},
		{"a number below one counts as one", store.Retry{Backoff: store.Linear, Base: 3 * time.Second}, -7, 3 * time.Second},
		{"a cap holds", store.Retry{Base: time.Second, Max: 5 * time.Second}, 4, 5 * time.Second},
		{"a cap holds for a list", store.Retry{Backoff: store.List, Delays: []time.Duration{time.Hour}, Max: time.Minute}, 1, time.Minute},
		{"a cap of -1 is none", store.Retry{Base: time.Second, Max: -1}, 21, 1 << 20 * time.Second},
		{"without a cap exponential ends at ten years", store.Retry{Base: time.Second}, math.MaxInt, decade},
		{"a larger cap ends at ten years too", store.Retry{Backoff: store.Fixed, Base: math.MaxInt64, Max: math.MaxInt64}, 1, decade},
		{"a huge factor ends at ten years", store.Retry{Base: time.Second, Factor: math.MaxFloat64}, 3, decade},
		{"without a cap linear ends at ten years", store.Retry{Backoff: store.Linear, Base: time.Hour}, math.MaxInt, decade},
		{"a fixed delay ends at ten years", store.Retry{Backoff: store.Fixed, Base: math.MaxInt64}, 1, decade},
		{"a factor out of range means two", store.Retry{Base: time.Second, Factor: math.NaN()}, 2, 2 * time.Second},
		{"no base means the default's", store.Retry{Backoff: store.Fixed, MaxAttempts: 3}, 2, time.Second},
		{"jitter takes its part at random", store.Retry{Backoff: store.Fixed, Base: time.Second, Jitter: 0.2}, 1, 900 * time.Millisecond},
		{"jitter of -1 is none", store.Retry{Backoff: store.Fixed, Base: time.Second, Jitter: -1}, 1, time.Second},
		{"no field at all means the default", store.Retry{}, 2, 1900 * time.Millisecond},
	} {
		t.Run(c.rule, func(t *testing.T) {
			if got := lifecycle.Delay(c.retry, c.n, half); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestWithoutARandomSourceThereIsNoJitter(t *testing.T) {
	if got := lifecycle.Delay(store.Retry{Backoff: store.Fixed, Base: time.Second, Jitter: 1}, 1, nil); got != time.Second {
		t.Errorf("got %v", got)
	}
}

func TestResolve(t *testing.T) {
	def := lifecycle.Default
	list := store.Retry{MaxAttempts: 4, Backoff: store.List, Delays: []time.Duration{time.Hour}, MaxAge: 72 * time.Hour}
	for _, c := range []struct {
		rule           string
		retry          store.Retry
		fallback, want store.Retry
	}{
		{"nothing said means the fallback", store.Retry{}, def, def},
		{"attempts alone leave the rest", store.Retry{MaxAttempts: 3}, def,
			store.Retry{MaxAttempts: 3, Backoff: store.Exponential, Base: time.Second, Factor: 2, Max: time.Hour, Jitter: 0.1}},
		{"a margin of claims follows its attempts", store.Retry{}, store.Retry{MaxAttempts: 2, MaxClaims: 9}, store.Retry{MaxAttempts: 2, MaxClaims: 9}},
		{"a margin of claims is not for other attempts", store.Retry{MaxAttempts: 50}, store.Retry{MaxAttempts: 2, MaxClaims: 9}, store.Retry{MaxAttempts: 50}},
		{"claims of its own bound attempts taken over", store.Retry{MaxClaims: 2}, store.Retry{MaxAttempts: 5, MaxClaims: 9}, store.Retry{MaxAttempts: 2, MaxClaims: 2}},
		{"delays are a list, and their longest raises the cap", store.Retry{MaxAttempts: 2, Delays: []time.Duration{time.Second, 6 * time.Hour}}, def,
			store.Retry{MaxAttempts: 2, Backoff: store.List, Delays: []time.Duration{time.Second, 6 * time.Hour}, Base: time.Second, Factor: 2, Max: 6 * time.Hour, Jitter: 0.1}},
		{"a long base raises the cap", store.Retry{MaxAttempts: 2, Backoff: store.Fixed, Base: 2 * time.Hour}, def,
			store.Retry{MaxAttempts: 2, Backoff: store.Fixed, Base: 2 * time.Hour, Factor: 2, Max: 2 * time.Hour, Jitter: 0.1}},
		{"a cap of its own stays", store.Retry{MaxAttempts: 2, Base: 2 * time.Hour, Max: time.Minute}, def,
			store.Retry{MaxAttempts: 2, Backoff: store.Exponential, Base: 2 * time.Hour, Factor: 2, Max: time.Minute, Jitter: 0.1}},
		{"a base is not lost to the fallback's list", store.Retry{Base: time.Second}, list,
			store.Retry{MaxAttempts: 4, Backoff: store.Exponential, Base: time.Second, MaxAge: 72 * time.Hour}},
		{"a fallback's list is taken over", store.Retry{MaxAttempts: 1}, list,
			store.Retry{MaxAttempts: 1, Backoff: store.List, Delays: []time.Duration{time.Hour}, MaxAge: 72 * time.Hour}},
		{"no cap, no age limit and no jitter can be asked for", store.Retry{MaxAttempts: -1, Max: -1, MaxAge: -1, Jitter: -1},
			store.Retry{MaxAttempts: 4, Base: time.Second, Max: time.Hour, MaxAge: time.Hour, Jitter: 0.1},
			store.Retry{MaxAttempts: -1, Base: time.Second, Max: -1, MaxAge: -1, Jitter: -1}},
		{"a fallback without a cap gives none", store.Retry{Base: time.Second}, store.Retry{MaxAttempts: 4, Max: -1}, store.Retry{MaxAttempts: 4, Base: time.Second, Max: -1}},
		{"the cap of an asked delay is taken over", store.Retry{}, store.Retry{RetryAfterMax: time.Hour}, store.Retry{RetryAfterMax: time.Hour}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			if got := lifecycle.Resolve(c.retry, c.fallback); !reflect.DeepEqual(got, c.want) {
				t.Errorf("\ngot  %+v\nwant %+v", got, c.want)
			}
		})
	}
}

func TestValidate(t *testing.T) {
	for _, r := range []store.Retry{
		{}, lifecycle.Default, {MaxAttempts: -1}, {MaxAge: -1, Max: -1, Jitter: -1}, {Jitter: 1}, {Factor: 1}, {MaxAttempts: 3, MaxClaims: 3},
		{Delays: []time.Duration{0, time.Hour}}, {Backoff: store.List, Delays: make([]time.Duration, 100)}, {Base: decade}, {MaxClaims: 3, MaxAttempts: -1},
	} {
		if err := lifecycle.Validate(r); err != nil {
			t.Errorf("%+v: %v", r, err)
		}
	}
	for _, c := range []struct {
		names string // field, value
		retry store.Retry
	}{
		{"retry.claims -2", store.Retry{MaxClaims: -2}},
		{"retry.claims 3 4", store.Retry{MaxClaims: 3, MaxAttempts: 4}},
		{"retry.age -5m", store.Retry{MaxAge: -5 * time.Minute}},
		{"retry.retry_after_max -5m", store.Retry{RetryAfterMax: -5 * time.Minute}},
		{"retry.backoff quadratic exponential", store.Retry{Backoff: "quadratic"}},
		{"retry.base -1s", store.Retry{Base: -time.Second}},
		{"retry.base 87600h0m1s", store.Retry{Base: decade + time.Second}},
		{"retry.max -1s", store.Retry{Max: -time.Second}},
		{"retry.factor 0.5", store.Retry{Factor: 0.5}},
		{"retry.factor NaN", store.Retry{Factor: math.NaN()}},
		{"retry.factor +Inf", store.Retry{Factor: math.Inf(1)}},
		{"retry.jitter 1.5", store.Retry{Jitter: 1.5}},
		{"retry.jitter -0.5", store.Retry{Jitter: -0.5}},
		{"retry.jitter NaN", store.Retry{Jitter: math.NaN()}},
		{"retry.delays empty", store.Retry{Backoff: store.List}},
		{"retry.delays 1 fixed", store.Retry{Backoff: store.Fixed, Delays: []time.Duration{1}}},
		{"retry.delays 101 100", store.Retry{Delays: make([]time.Duration, 101)}},
		{"retry.delays[1] -1s", store.Retry{Delays: []time.Duration{0, -time.Second}}},
		{"retry.delays[0] 87600h0m1s", store.Retry{Delays: []time.Duration{decade + time.Second}}},
	} {
		err := lifecycle.Validate(c.retry)
		if err == nil {
			t.Errorf("%s: accepted", c.names)
			continue
		}
		for _, part := range strings.Fields(c.names) {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q does not name %s", err, part)
			}
		}
	}
}
