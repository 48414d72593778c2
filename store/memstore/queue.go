package memstore

import (
	"maps"

	"github.com/tidwall/btree"

	"github.com/belfryhq/belfry/store"
)

// queue is a line of messages and its indexes. It exists while something is stored in it or its rate has a memory.
type queue struct {
	name   string
	ids    map[string]*record
	peak   int       // the most that ids held since it was made
	lanes  []*lane   // in the order of priorities; none is empty
	leased []*record // in no order
	counts [store.Canceled + 1]int

	keys   *btree.BTreeG[*record] // who holds a dedup key or once did, by key; nil until there is one
	groups *btree.BTreeG[*record] // live messages that have a group, by group; nil until there is one
	gates  map[string][]*record   // who waits for an id

	arrival int64 // the theoretical arrival time of the rate limit in Unix microseconds, or noArrival

	shapes    [maxShapes]*shape
	nextShape int
}

// find returns what is stored under a key, traces included, or nil.
func (s *Store) find(queue, id string) *record {
	if q := s.queues[queue]; q != nil {
		return q.ids[id]
	}
	return nil
}

// message returns the message under a key, or nil.
func (s *Store) message(queue, id string) *record {
	if r := s.find(queue, id); r != nil && r.state != trace {
		return r
	}
	return nil
}

// open returns the queue with the name, new or not.
func (s *Store) open(name string) *queue {
	q := s.queues[name]
	if q == nil {
		q = &queue{name: name, ids: make(map[string]*record), arrival: noArrival}
		s.queues[name] = q
		s.names.Set(q)
	}
	return q
}

// tidy forgets a queue that holds nothing.
func (s *Store) tidy(q *queue) {
	if len(q.ids) == 0 && q.arrival == noArrival && s.queues[q.name] == q {
		delete(s.queues, q.name)
		s.names.Delete(q)
	}
}

// insert adds a record that is complete.
func (s *Store) insert(r *record) {
	q := r.queue
	q.ids[r.id] = r
	q.peak = max(q.peak, len(q.ids))
	s.index(r)
}

// remove takes a record out; its version is remembered so that nothing under its id repeats one.
func (s *Store) remove(r *record) {
	s.unindex(r)
	q := r.queue
	delete(q.ids, r.id)
	s.last = max(s.last, r.version)
	q.shrink()
	s.tidy(q)
}

// minPeak is the size below which a map is not worth making anew.
const minPeak = 1024

// shrink makes the map of ids anew when it has become much smaller than it was: a map keeps the memory of its largest
// size, and visiting it costs as much.
func (q *queue) shrink() {
	if q.peak < minPeak || len(q.ids) > q.peak/8 {
		return
	}
	ids := make(map[string]*record, len(q.ids))
	maps.Copy(ids, q.ids)
	q.ids, q.peak = ids, len(ids)
}

// change is one write to a message that stays: it raises the version and keeps the indexes true.
func (s *Store) change(r *record, now instant, mutate func()) {
	s.unindex(r)
	mutate()
	r.version++
	r.updatedAt = now
	s.index(r)
}

// index enters a record wherever its state, times and names say that it belongs.
func (s *Store) index(r *record) {
	q := r.queue
	q.counts[r.state]++
	if r.state.Live() {
		q.lane(r.priority).add(r)
	}
	if r.state == store.Leased {
		q.hold(r)
	}
	x := r.rare
	if x == nil {
		return
	}
	if x.dedupKey != "" && (r.state.Live() || x.dedupUntil != unset) {
		q.keyIndex().Set(r)
	}
	if x.group != "" && r.state.Live() {
		q.groupIndex().Set(r)
	}
	if !r.state.Live() && x.purgeAt != never {
		s.purge.Set(r)
	}
}

// unindex is the opposite of index; it reads the same fields, so they must not have changed in between.
func (s *Store) unindex(r *record) {
	q := r.queue
	q.counts[r.state]--
	if r.state.Live() {
		q.leaveLane(r)
	}
	if r.state == store.Leased {
		q.letGo(r)
	}
	x := r.rare
	if x == nil {
		return
	}
	if x.dedupKey != "" && (r.state.Live() || x.dedupUntil != unset) {
		q.keys.Delete(r)
	}
	if x.group != "" && r.state.Live() {
		q.groups.Delete(r)
	}
	if !r.state.Live() && x.purgeAt != never {
		s.purge.Delete(r)
	}
}

// hold adds a record to those under a lease.
func (q *queue) hold(r *record) {
	r.leasedAt = int32(len(q.leased))
	q.leased = append(q.leased, r)
}

// letGo takes it out again: the last one takes its place.
func (q *queue) letGo(r *record) {
	end := len(q.leased) - 1
	moved := q.leased[end]
	q.leased[r.leasedAt], moved.leasedAt = moved, r.leasedAt
	q.leased[end] = nil
	q.leased = q.leased[:end]
}
