package memstore

import (
	"slices"

	"github.com/tidwall/btree"

	"github.com/belfryhq/belfry/store"
)

// groupIndex returns the index of live messages by (group, id).
func (q *queue) groupIndex() *btree.BTreeG[*record] {
	if q.groups == nil {
		q.groups = newTree(func(a, b *record) bool {
			if a.rare.group != b.rare.group {
				return a.rare.group < b.rare.group
			}
			return a.id < b.id
		})
	}
	return q.groups
}

// members returns the ids of the live messages that a gate names, in order, each once, without the gated id itself.
func (q *queue) members(g *store.Gate, gated string) []string {
	if g == nil {
		return nil
	}
	var ids []string
	for _, id := range g.IDs {
		if r := q.ids[id]; r != nil && r.state.Live() && id != gated {
			ids = append(ids, id)
		}
	}
	if g.Group != "" && q.groups != nil {
		q.groups.Ascend(&record{rare: &rare{group: g.Group}}, func(r *record) bool {
			if r.rare.group == g.Group && r.id != gated {
				ids = append(ids, r.id)
			}
			return r.rare.group == g.Group
		})
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// close makes a record that is not yet stored wait for the ids.
func (q *queue) close(r *record, ids []string) {
	x := r.own()
	x.gate, x.waits = ids, len(ids)
	if q.gates == nil {
		q.gates = make(map[string][]*record)
	}
	for _, id := range ids {
		q.gates[id] = append(q.gates[id], r)
	}
}

// abandon makes a record that leaves the queue's waiting messages wait for nothing any more.
func (q *queue) abandon(r *record) {
	x := r.rare
	if x == nil || x.waits == 0 {
		return
	}
	for _, id := range x.gate {
		waiting := slices.DeleteFunc(q.gates[id], func(other *record) bool { return other == r })
		if len(waiting) == 0 {
			delete(q.gates, id)
		} else {
			q.gates[id] = waiting
		}
	}
	x.gate, x.waits = nil, 0
}

// leaveFinished takes a message that has just been written out of the gates that wait for it, if it is finished.
func (s *Store) leaveFinished(r *record, now instant) {
	if !r.state.Live() {
		s.leave(r.queue, r.id, now)
	}
}

// leave takes a member that is live no more out of every gate that waits for it; the last one opens the gate.
func (s *Store) leave(q *queue, id string, now instant) {
	waiting := q.gates[id]
	delete(q.gates, id)
	for _, r := range waiting {
		s.change(r, now, func() {
			r.rare.waits--
			if r.rare.waits == 0 {
				r.rare.gate = nil
				r.visibleAt = r.dueAt
				s.opened = append(s.opened, store.QueueHint{Queue: q.name, At: r.dueAt.time()})
			}
		})
	}
}
