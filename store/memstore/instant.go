package memstore

import (
	"math"
	"time"

	"github.com/belfryhq/belfry/store"
)

// instant is a time.Time in the eight bytes of its Unix milliseconds.
type instant int64

const (
	// unset is the zero time.Time; it sorts before every other.
	unset instant = math.MinInt64
	// never is store.Never.
	never instant = 1<<53 - 1
)

// at returns the instant that is kept for a field of a message: rounded up, so that nothing is early.
func at(t time.Time) instant {
	if t.IsZero() {
		return unset
	}
	return instant(store.Ceil(t).UnixMilli())
}

// floor returns the instant of a caller's now.
func floor(t time.Time) instant {
	if t.IsZero() {
		return unset
	}
	return instant(t.UnixMilli())
}

// time returns the instant as the contract's records carry it.
func (i instant) time() time.Time {
	if i == unset {
		return time.Time{}
	}
	return time.UnixMilli(int64(i)).UTC()
}

// add returns the instant a duration later, rounded up to the millisecond.
func (i instant) add(d time.Duration) instant {
	ms := instant(d / time.Millisecond)
	if d%time.Millisecond > 0 {
		ms++
	}
	return i + ms
}
