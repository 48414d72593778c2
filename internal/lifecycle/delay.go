package lifecycle

import (
	"math"
	"time"

	"github.com/belfryhq/belfry/store"
)

// Delay returns the backoff before the attempt after number n (from 1): never negative, never more than the policy's
// Max or ten years, for any n. random returns numbers in [0, 1) and is asked only where the policy has jitter; with a
// nil random there is none. A policy field that is out of range counts as open.
func Delay(r store.Retry, n int, random func() float64) time.Duration {
	r = effective(r)
	limit := maxDelay
	if r.Max > 0 {
		limit = min(limit, r.Max)
	}
	d := min(max(grown(r, max(n, 1)), 0), limit)
	if random == nil || !(r.Jitter > 0) {
		return d
	}
	off := min(r.Jitter, 1) * (1 - min(max(random(), 0), 1))
	return min(max(d-time.Duration(float64(d)*off), 0), d)
}

// grown returns the delay before cap and jitter, at most a little more than maxDelay.
func grown(r store.Retry, n int) time.Duration {
	switch r.Backoff {
	case store.Fixed:
		return r.Base
	case store.Linear:
		return bounded(float64(r.Base) * float64(n))
	case store.List:
		if len(r.Delays) > 0 {
			return r.Delays[min(n, len(r.Delays))-1]
		}
		return r.Base
	default:
		return bounded(float64(r.Base) * math.Pow(r.Factor, float64(n-1)))
	}
}

// bounded turns a number of nanoseconds into a duration without overflow.
func bounded(ns float64) time.Duration {
	if !(ns < float64(maxDelay)) {
		return maxDelay
	}
	return time.Duration(ns)
}
