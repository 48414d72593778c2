package redisstore

import (
	"math"
	"slices"

	"github.com/belfryhq/belfry/store"
)

// filter is the conditions of a query on a message, apart from its queue.
type filter struct {
	states           string // a digit for each that is asked for
	kind             string
	parent           string
	group            string
	fireMin, fireMax int64 // unset: no bound
}

// newFilter returns the conditions of a query. In a count the order selects nothing.
func newFilter(q *store.Query, count bool) filter {
	f := filter{kind: q.Kind, parent: q.Parent, group: q.Group, fireMin: millis(q.FireMin), fireMax: floor(q.FireMax)}
	for s := store.Scheduled; s <= store.Canceled; s++ {
		asked := len(q.States) == 0 || slices.Contains(q.States, s)
		if asked && (count || q.Order != store.ByFinished || s.Finished()) {
			f.states += string(rune('0' + s))
		}
	}
	return f
}

// admits reports whether a message meets the conditions.
func (f *filter) admits(m *store.Message) bool {
	fire, latest := millis(m.FireAt), int64(math.MaxInt64)
	if f.fireMax != unset {
		latest = f.fireMax
	}
	return slices.Contains([]byte(f.states), '0'+byte(m.State)) && fire >= f.fireMin && fire <= latest &&
		(f.kind == "" || m.Kind == f.kind) && (f.parent == "" || m.Parent == f.parent) && (f.group == "" || m.Group == f.group)
}

// byStateAlone reports whether nothing but the state of a message matters.
func (f *filter) byStateAlone() bool {
	return f.kind == "" && f.parent == "" && f.group == "" && f.fireMin == unset && f.fireMax == unset
}

// args are what list.lua takes of the conditions.
func (f *filter) args() []any {
	bound := func(ms int64) any {
		if ms == unset {
			return ""
		}
		return ms
	}
	return []any{f.states, f.kind, f.parent, f.group, bound(f.fireMin), bound(f.fireMax)}
}
