package lifecycle

import (
	"fmt"
	"math"
	"reflect"
	"time"

	"github.com/belfryhq/belfry/store"
)

// Default is the retry policy of native queues: 25 attempts, about 13 hours from the first to the last. Read only.
var Default = store.Retry{
	MaxAttempts: 25,
	Backoff:     store.Exponential,
	Base:        time.Second,
	Factor:      2,
	Max:         time.Hour,
	Jitter:      0.1,
}

const (
	// spareClaims is how many claims a message has beyond its attempts when its policy does not say.
	spareClaims = 4
	// defaultRetryAfterMax caps what a target asks for when the policy does not say.
	defaultRetryAfterMax = 24 * time.Hour
	// maxDelay caps every delay of a policy: ten years.
	maxDelay = 10 * 365 * 24 * time.Hour
	// maxDelays bounds a list backoff, because the policy is stored with every message.
	maxDelays = 100
	// none is how a policy says that it wants no limit or no jitter where zero means the fallback's.
	none = -1
)

// Resolve fills what a policy leaves open from the fallback. It is done once, when a message is accepted, and may be
// repeated. Three rules keep together what belongs together: MaxClaims is taken over only along with MaxAttempts, of
// which it is a margin, and one of its own bounds attempts taken over; Delays without a Backoff mean a list, and a Base or Factor is never lost to the fallback's list;
// and a cap taken over is raised to the longest delay that the policy itself names. A Max, MaxAge or Jitter of -1 says
// that there is none and stays.
func Resolve(r, fallback store.Retry) store.Retry {
	if r.MaxAttempts == 0 {
		r.MaxAttempts = fallback.MaxAttempts
		if r.MaxClaims == 0 {
			r.MaxClaims = fallback.MaxClaims
		} else {
			r.MaxAttempts = min(r.MaxAttempts, r.MaxClaims)
		}
	}
	if r.Max == 0 && fallback.Max > 0 {
		r.Max = max(fallback.Max, longest(r))
	} else if r.Max == 0 {
		r.Max = fallback.Max
	}
	r.Backoff = shape(r, fallback)
	if r.Backoff == store.List && len(r.Delays) == 0 {
		r.Delays = fallback.Delays
	}
	fill(&r.MaxAge, fallback.MaxAge)
	fill(&r.Base, fallback.Base)
	fill(&r.Factor, fallback.Factor)
	fill(&r.Jitter, fallback.Jitter)
	fill(&r.RetryAfterMax, fallback.RetryAfterMax)
	return r
}

// fill sets a zero field.
func fill[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// shape returns the backoff of a policy that may leave it to the fallback.
func shape(r, fallback store.Retry) store.Backoff {
	switch {
	case r.Backoff != "":
		return r.Backoff
	case len(r.Delays) > 0:
		return store.List
	case fallback.Backoff == store.List && (r.Base > 0 || r.Factor > 0):
		return store.Exponential
	default:
		return fallback.Backoff
	}
}

// longest returns the longest delay that a policy names.
func longest(r store.Retry) time.Duration {
	d := r.Base
	for _, one := range r.Delays {
		d = max(d, one)
	}
	return d
}

// Validate reports the first thing that is wrong with a policy: the field, its value and the remedy. A policy that
// leaves fields open is valid; nil means that Settle can work with it.
func Validate(r store.Retry) error {
	if err := validateBounds(r); err != nil {
		return err
	}
	return validateShape(r)
}

func validateBounds(r store.Retry) error {
	switch {
	case r.MaxClaims < 0:
		return fmt.Errorf("retry.claims is %d: give a positive number, or 0 for attempts + %d", r.MaxClaims, spareClaims)
	case r.MaxClaims > 0 && r.MaxAttempts > r.MaxClaims:
		return fmt.Errorf("retry.claims is %d, fewer than the %d attempts: every attempt needs a claim, so give at least %d",
			r.MaxClaims, r.MaxAttempts, r.MaxAttempts)
	case r.MaxAge < 0 && r.MaxAge != none:
		return fmt.Errorf("retry.age is %v: give a positive duration, or -1 for no limit", r.MaxAge)
	case r.RetryAfterMax < 0:
		return fmt.Errorf("retry.retry_after_max is %v: give a positive duration, or 0 for %v", r.RetryAfterMax, defaultRetryAfterMax)
	}
	return nil
}

func validateShape(r store.Retry) error {
	switch r.Backoff {
	case "", store.Exponential, store.Linear, store.Fixed, store.List:
	default:
		return fmt.Errorf("retry.backoff is %q: give one of exponential, linear, fixed, list", r.Backoff)
	}
	switch {
	case r.Base < 0 || r.Base > maxDelay:
		return fmt.Errorf("retry.base is %v: give a duration from 0 to %v", r.Base, maxDelay)
	case r.Max < 0 && r.Max != none:
		return fmt.Errorf("retry.max is %v: give a positive duration, or -1 for no cap", r.Max)
	case r.Factor != 0 && (r.Factor < 1 || math.IsNaN(r.Factor) || math.IsInf(r.Factor, 0)):
		return fmt.Errorf("retry.factor is %v: give a number from 1, or 0 for 2", r.Factor)
	case math.IsNaN(r.Jitter) || r.Jitter > 1 || r.Jitter < 0 && r.Jitter != none:
		return fmt.Errorf("retry.jitter is %v: give a number from 0 to 1, or -1 for none", r.Jitter)
	}
	return validateDelays(r)
}

func validateDelays(r store.Retry) error {
	switch {
	case r.Backoff == store.List && len(r.Delays) == 0:
		return fmt.Errorf("retry.delays is empty: a list backoff needs at least one delay")
	case len(r.Delays) > 0 && r.Backoff != store.List && r.Backoff != "":
		return fmt.Errorf("retry.delays has %d delays, but retry.backoff is %q: make it \"list\" or leave the delays out",
			len(r.Delays), r.Backoff)
	case len(r.Delays) > maxDelays:
		return fmt.Errorf("retry.delays has %d delays: give at most %d, the last one repeats", len(r.Delays), maxDelays)
	}
	for i, d := range r.Delays {
		if d < 0 || d > maxDelay {
			return fmt.Errorf("retry.delays[%d] is %v: give a duration from 0 to %v", i, d, maxDelay)
		}
	}
	return nil
}

// effective returns the policy that a stored message is treated by. Whoever accepted the message has resolved it, so
// only what would be senseless as zero is filled: all of a policy without any field set, the number of attempts, the
// base and the factor. A zero Max, MaxAge or Jitter means none, as store.Retry says.
func effective(r store.Retry) store.Retry {
	if reflect.ValueOf(r).IsZero() {
		return Default
	}
	fill(&r.MaxAttempts, Default.MaxAttempts)
	if r.Base <= 0 {
		r.Base = Default.Base
	}
	if !(r.Factor >= 1) { // NaN included
		r.Factor = 2
	}
	if r.Backoff == "" && len(r.Delays) > 0 {
		r.Backoff = store.List
	}
	return r
}

// overclaimed reports whether the claim with this number, after so many attempts, is one too many. Where attempts have
// no limit and claims none of their own, what is bounded is the claims that came to nothing.
func overclaimed(r store.Retry, claims, attempts int) bool {
	switch {
	case r.MaxClaims > 0:
		return claims > r.MaxClaims
	case r.MaxAttempts < 0:
		return claims-attempts > Default.MaxAttempts+spareClaims
	default:
		return claims-spareClaims > r.MaxAttempts
	}
}
