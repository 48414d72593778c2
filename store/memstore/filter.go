package memstore

import (
	"context"
	"slices"
	"strings"

	"github.com/belfryhq/belfry/store"
)

// stretch is how many messages a scan looks at before it lets others have the store.
const stretch = 4096

// scan visits the messages that pass the filter in the queues that the query asks about, in no order. It lets go of the
// mutex now and then, so what is written meanwhile may be seen or not; what is not is seen exactly once, as Go's maps
// promise.
func (s *Store) scan(ctx context.Context, query *store.Query, f *filter, visit func(*record)) error {
	seen := 0
	for _, q := range s.selected(query) {
		if f.countStates(q) == 0 {
			continue
		}
		for _, r := range q.ids {
			if f.admits(r) {
				visit(r)
			}
			if seen++; seen%stretch != 0 {
				continue
			}
			if err := s.pause(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// pause lets others have the store for a moment. The mutex is held again when it returns, whatever it returns.
func (s *Store) pause(ctx context.Context) error {
	s.mu.Unlock()
	s.mu.Lock()
	if s.isClosed() {
		return store.ErrClosed
	}
	return ctx.Err()
}

// selected returns the queues that the query asks about.
func (s *Store) selected(query *store.Query) []*queue {
	var selected []*queue
	if query.Queue != "" {
		if q := s.queues[query.Queue]; q != nil {
			selected = append(selected, q)
		}
		return selected
	}
	s.names.Ascend(&queue{name: query.Prefix}, func(q *queue) bool {
		if !strings.HasPrefix(q.name, query.Prefix) {
			return false
		}
		selected = append(selected, q)
		return true
	})
	return selected
}

// filter is the conditions of a query on a message.
type filter struct {
	states           [store.Canceled + 1]bool
	kind             string
	parent           string
	group            string
	fireMin, fireMax instant
}

func newFilter(query *store.Query) *filter {
	f := &filter{kind: query.Kind, parent: query.Parent, group: query.Group, fireMin: at(query.FireMin), fireMax: never}
	if !query.FireMax.IsZero() {
		f.fireMax = floor(query.FireMax)
	}
	for s := store.Scheduled; s <= store.Canceled; s++ {
		asked := len(query.States) == 0 || slices.Contains(query.States, s)
		f.states[s] = asked && (query.Order != store.ByFinished || s.Finished())
	}
	return f
}

// admits reports whether the record is a message that meets the conditions.
func (f *filter) admits(r *record) bool {
	if !f.states[r.state] || r.fireAt < f.fireMin || r.fireAt > f.fireMax {
		return false
	}
	if f.kind != "" && r.shape.kind != f.kind {
		return false
	}
	if f.parent == "" && f.group == "" {
		return true
	}
	x := r.extra()
	return (f.parent == "" || x.parent == f.parent) && (f.group == "" || x.group == f.group)
}

// byStateAlone reports whether nothing but the state of a message matters.
func (f *filter) byStateAlone() bool {
	return f.kind == "" && f.parent == "" && f.group == "" && f.fireMin == unset && f.fireMax == never
}

// countStates returns how many messages of the queue are in a state that is asked for.
func (f *filter) countStates(q *queue) int {
	n := 0
	for state, asked := range f.states {
		if asked {
			n += q.counts[state]
		}
	}
	return n
}
