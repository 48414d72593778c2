package sqlstore

// This file finds, stores and removes single rows.

// columns returns the destinations of the record's first columns.
func (r *record) columns(n int) []any {
	p := r.pointers()
	return p[:n]
}

// find returns the message under a key, live or finished, with all it has, or nil. In a write it is locked where there are
// several writers: one that moves between the tables while this waits for it is found by the second look.
func (w *work) find(queue, id string) (*record, error) {
	looks := []*Query{w.q.findLive, w.q.findFinished}
	if w.writes && w.q.lockLive != nil {
		looks = []*Query{w.q.lockLive, w.q.lockFinished, w.q.lockLive}
	}
	r := &record{}
	for _, q := range looks {
		found, err := w.first(q, r.columns(recordWidth), queue, id)
		if err != nil {
			return nil, err
		}
		if found {
			return r, nil
		}
	}
	return nil, nil
}

// findTrace returns the version of the trace under a key, and whether there is one.
func (w *work) findTrace(queue, id string) (version int64, found bool, err error) {
	found, err = w.first(w.q.findTrace, []any{&version}, queue, id)
	return version, found, err
}

// holder returns who else than the id holds the dedup key, or nil.
func (w *work) holder(queue, key, id string) (*record, error) {
	r := &record{}
	found, err := w.first(w.q.holderLive, r.columns(bareWidth), queue, key, id)
	if err == nil && !found {
		found, err = w.first(w.q.holderFinished, r.columns(bareWidth), queue, key, id, w.now)
	}
	if err != nil || !found {
		return nil, err
	}
	return r, nil
}

// insert stores a record whose id and key are free.
func (w *work) insert(r *record) error {
	q := w.q.insertFinished
	if r.live() {
		q = w.q.insertLive
	}
	if _, err := w.exec(q, r.columns(recordWidth)...); err != nil {
		return err
	}
	w.versions.Saw(r.version)
	return w.insertBodies([]*record{r})
}

// insertBodies stores what the records keep apart.
func (w *work) insertBodies(records []*record) error {
	apart := records[:0:0]
	for _, r := range records {
		if r.body != 0 {
			apart = append(apart, r)
		}
	}
	return w.execEach(w.q.insertBody, len(apart), func(i int) []any {
		r := apart[i]
		return []any{&r.n, &r.apart.metadata, &r.apart.payload}
	}, nil)
}

// remove takes a record's row and body out. Who waits for it still does.
func (w *work) remove(r *record) error {
	q := w.q.deleteFinished
	if r.live() {
		q = w.q.deleteLive
	}
	if _, err := w.exec(q, r.n); err != nil {
		return err
	}
	if r.waits > 0 {
		if _, err := w.exec(w.q.deleteGatesOfWaiter, r.queue, r.id); err != nil {
			return err
		}
	}
	w.versions.Saw(r.version)
	if r.body == 0 {
		return nil
	}
	_, err := w.exec(w.q.deleteBody, r.n)
	return err
}
