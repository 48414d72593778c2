package sqlstore

import (
	"math"
	"slices"
	"time"

	"github.com/belfryhq/belfry/store"
)

// States as sets of bits.
const (
	liveStates     = 1<<store.Scheduled | 1<<store.Leased
	finishedStates = 1<<store.Done | 1<<store.Dead | 1<<store.Canceled
	allStates      = liveStates | finishedStates
)

// filter is the conditions of a query that its statements check in each row.
type filter struct {
	states           int64
	kind, group      string
	fired            int64 // 1: fireMin and fireMax apply
	fireMin, fireMax int64
}

func newFilter(q *store.Query) *filter {
	f := &filter{kind: q.Kind, group: q.Group}
	for s := store.Scheduled; s <= store.Canceled; s++ {
		if len(q.States) == 0 || slices.Contains(q.States, s) {
			f.states |= 1 << s
		}
	}
	if !q.FireMin.IsZero() || !q.FireMax.IsZero() {
		f.fired = 1
	}
	f.fireMin, f.fireMax = ceilOr(q.FireMin, math.MinInt64), math.MaxInt64
	if !q.FireMax.IsZero() {
		f.fireMax = floor(q.FireMax)
	}
	return f
}

// ceilOr returns an instant, or the default for the zero time.
func ceilOr(t time.Time, zero int64) int64 {
	if t.IsZero() {
		return zero
	}
	return ceil(t)
}

// live and finished tell whether the filter admits anything of that kind.
func (f *filter) live() bool     { return f.states&liveStates != 0 }
func (f *filter) finished() bool { return f.states&finishedStates != 0 }

// part returns the filter for rows of which all have one of the states. Where it admits all of them, the statement need
// not look at the row's state.
func (f *filter) part(states int64) *filter {
	g := *f
	if f.states&states == states {
		g.states = allStates
	}
	return &g
}

// args are the arguments filterParams.
func (f *filter) args() []any {
	return []any{&f.states, &f.kind, &f.group, &f.fired, &f.fireMin, &f.fireMax}
}

// plain reports whether the filter asks for states alone.
func (f *filter) plain() bool { return f.kind == "" && f.group == "" && f.fired == 0 }
