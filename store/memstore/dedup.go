package memstore

import "github.com/tidwall/btree"

// keyIndex returns the index of dedup keys: by key, among equal keys live ones first, then those that hold the longest.
// Several have one key when older holders are finished and past their DedupUntil.
func (q *queue) keyIndex() *btree.BTreeG[*record] {
	if q.keys == nil {
		q.keys = newTree(func(a, b *record) bool {
			x, y := a.rare, b.rare
			if x.dedupKey != y.dedupKey {
				return x.dedupKey < y.dedupKey
			}
			if u, v := a.holdsUntil(), b.holdsUntil(); u != v {
				return u > v
			}
			return a.id < b.id
		})
	}
	return q.keys
}

// holdsUntil is the instant until which the record holds its dedup key.
func (r *record) holdsUntil() instant {
	if r.state.Live() {
		return never + 1
	}
	return r.rare.dedupUntil
}

// keyHolder returns who else than the id holds the dedup key at the instant, or nil.
func (q *queue) keyHolder(key, id string, now instant) *record {
	if key == "" || q.keys == nil {
		return nil
	}
	first := &record{rare: &rare{dedupKey: key, dedupUntil: never + 2}}
	var found *record
	q.keys.Ascend(first, func(r *record) bool {
		if r.rare.dedupKey != key || !r.holds(now) {
			return false
		}
		if r.id == id {
			return true
		}
		found = r
		return false
	})
	return found
}
