package memstore

import (
	"cmp"
	"slices"

	"github.com/tidwall/btree"
)

// lane holds the live messages of one priority of a queue, by (VisibleAt, ID). Closed gates wait at its far end, since
// their VisibleAt is Never.
type lane struct {
	priority int32
	tree     *btree.BTreeG[slot]
}

// slot is a message in a lane. It carries its instant so that comparisons seldom touch the message.
type slot struct {
	at instant
	r  *record
}

func (a slot) before(b slot) bool {
	if a.at != b.at {
		return a.at < b.at
	}
	return a.r.id < b.r.id
}

// compare orders slots as before does.
func (a slot) compare(b slot) int {
	return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.r.id, b.r.id))
}

// nobody is a record with an empty id, to search by; it is never changed.
var nobody = &record{}

// probe returns the place before every message visible at the instant or later.
func probe(at instant) slot { return slot{at, nobody} }

// lane returns the lane of a priority, new or not.
func (q *queue) lane(priority int32) *lane {
	i, found := q.searchLane(priority)
	if !found {
		q.lanes = slices.Insert(q.lanes, i, &lane{priority, newTree(slot.before)})
	}
	return q.lanes[i]
}

func (q *queue) searchLane(priority int32) (int, bool) {
	return slices.BinarySearchFunc(q.lanes, priority, func(l *lane, p int32) int {
		return int(l.priority) - int(p)
	})
}

// leaveLane takes a message out of its lane, and the lane out of the queue when it was the last.
func (q *queue) leaveLane(r *record) {
	i, _ := q.searchLane(r.priority)
	l := q.lanes[i]
	l.tree.Delete(slot{r.visibleAt, r})
	if l.tree.Len() == 0 {
		q.lanes = slices.Delete(q.lanes, i, i+1)
	}
}

func (l *lane) add(r *record) { l.tree.Set(slot{r.visibleAt, r}) }

// next returns the earliest instant at which something in the queue is visible; never when there is nothing.
func (q *queue) next() instant {
	earliest := never
	for _, l := range q.lanes {
		if first, ok := l.tree.Min(); ok {
			earliest = min(earliest, first.at)
		}
	}
	return earliest
}

// nextFrom returns the earliest instant from the given one on at which something in the queue is visible.
func (q *queue) nextFrom(from instant) (earliest instant, found bool) {
	earliest = never
	for _, l := range q.lanes {
		l.tree.Ascend(probe(from), func(s slot) bool {
			earliest, found = min(earliest, s.at), true
			return false
		})
	}
	return earliest, found
}
