package memstore

import "github.com/belfryhq/belfry/store"

// foresee tells what an atomic batch comes to if a message of it is refused, and nil if none is. It changes nothing:
// what earlier messages of the batch will have done is kept beside the store.
func (s *Store) foresee(now instant, messages []store.Message, mode store.PutMode) []store.PutResult {
	stored := make(map[store.Key]*store.Message, len(messages))
	holders := make(map[store.Key]*store.Message) // by queue and dedup key
	for i := range messages {
		m := &messages[i]
		if r, ok := s.foreseeOne(now, m, mode, stored, holders); ok {
			return aborted(len(messages), i, r)
		}
		if earlier := stored[m.Key()]; earlier != nil && earlier.DedupKey != "" {
			dedup := store.Key{Queue: m.Queue, ID: earlier.DedupKey}
			if holders[dedup] == earlier {
				delete(holders, dedup)
			}
		}
		stored[m.Key()] = m
		if wouldHold(m, now) {
			holders[store.Key{Queue: m.Queue, ID: m.DedupKey}] = m
		}
	}
	return nil
}

// foreseeOne returns the refusal of a message, if there is one.
func (s *Store) foreseeOne(now instant, m *store.Message, mode store.PutMode, stored, holders map[store.Key]*store.Message) (store.PutResult, bool) {
	if earlier := stored[m.Key()]; earlier != nil {
		if mode&store.Overwrite == 0 {
			return refusedBy(store.ErrExists, earlier), true
		}
	} else if old := s.find(m.Queue, m.ID); old != nil {
		if err := refusal(old, now, mode); err != nil {
			return refused(err, old), true
		}
	}
	if !wouldHold(m, now) {
		return store.PutResult{}, false
	}
	if earlier := holders[store.Key{Queue: m.Queue, ID: m.DedupKey}]; earlier != nil && earlier.ID != m.ID {
		return refusedBy(store.ErrDuplicate, earlier), true
	}
	if q := s.queues[m.Queue]; q != nil {
		holder := q.keyHolder(m.DedupKey, m.ID, now)
		if holder != nil && stored[store.Key{Queue: m.Queue, ID: holder.id}] == nil {
			return refused(store.ErrDuplicate, holder), true
		}
	}
	return store.PutResult{}, false
}

// refusedBy is the result of a message that an earlier one of its batch keeps out.
func refusedBy(err error, earlier *store.Message) store.PutResult {
	r := record{queue: &queue{name: earlier.Queue}, id: earlier.ID, state: max(earlier.State, store.Scheduled)}
	r.write(earlier)
	r.createdAt, r.updatedAt, r.visibleAt = at(earlier.CreatedAt), unset, unset
	return refused(err, &r)
}

// aborted are the results of a batch of which one message was refused.
func aborted(n, refused int, why store.PutResult) []store.PutResult {
	results := make([]store.PutResult, n)
	for i := range results {
		results[i].Err = store.ErrAborted
	}
	results[refused] = why
	return results
}
