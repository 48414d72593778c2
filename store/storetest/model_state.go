package storetest

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/belfryhq/belfry/store"
)

// model is what a store should hold, in the plainest form.
type model struct {
	held     map[store.Key]*modelEntry
	versions map[store.Key][]int64 // all that were seen under a key, oldest first
	touched  []store.Key           // what the operation may have changed
	arrivals map[string]int64      // theoretical arrival times in microseconds, by queue

	docs        map[string]store.Doc
	docVersions map[string][]int64 // all that a name ever had, oldest first
	revision    int64
}

// modelEntry is what is stored under a key.
type modelEntry struct {
	m     store.Message   // with payload and history
	gate  map[string]bool // the ids that a closed gate still waits for
	trace bool            // nothing but the id is taken, until m.PurgeAt
	wrote bool            // the version must have grown since it was last seen
}

func newModel() *model {
	return &model{
		held: map[store.Key]*modelEntry{}, versions: map[store.Key][]int64{}, arrivals: map[string]int64{},
		docs: map[string]store.Doc{}, docVersions: map[string][]int64{},
	}
}

// message returns the message under a key, or nil.
func (m *model) message(key store.Key) *modelEntry {
	if e := m.held[key]; e != nil && !e.trace {
		return e
	}
	return nil
}

// keys returns all keys that pass, sorted.
func (m *model) keys(pass func(*modelEntry) bool) []store.Key {
	var keys []store.Key
	for key, e := range m.held {
		if pass(e) {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b store.Key) int {
		return cmp.Or(strings.Compare(a.Queue, b.Queue), strings.Compare(a.ID, b.ID))
	})
	return keys
}

// touch notes that the operation may have changed what is under the key.
func (m *model) touch(key store.Key) { m.touched = append(m.touched, key) }

// taken returns what the operation may have changed, and begins the next one.
func (m *model) taken() []store.Key {
	t := m.touched
	m.touched = nil
	return t
}

// wrote notes a write to a message.
func (m *model) wrote(e *modelEntry, now time.Time) {
	e.m.UpdatedAt, e.wrote = now, true
	m.touch(e.m.Key())
}

// saw notes a version that the store gave a message; it tells what is wrong with it, if anything.
func (m *model) saw(e *modelEntry, version int64) error {
	key := e.m.Key()
	if e.wrote {
		if version <= e.m.Version {
			return errors.New("a write did not raise the version")
		}
		if slices.Contains(m.versions[key], version) {
			return errors.New("the id had the version before")
		}
		m.versions[key] = append(m.versions[key], version)
		e.m.Version, e.wrote = version, false
	}
	if version != e.m.Version {
		return errors.New("the version changed without a write")
	}
	return nil
}

// inFlight reports whether the message is under a lease that is alive.
func (e *modelEntry) inFlight(now time.Time) bool {
	return e.m.State == store.Leased && e.m.VisibleAt.After(now)
}

// holds reports whether a message keeps its dedup key from others.
func modelHolds(m *store.Message, now time.Time) bool {
	return m.DedupKey != "" && (m.State.Live() || m.DedupUntil.After(now))
}

// holder returns the other message that holds the dedup key of one that would hold it, or nil.
func (m *model) holder(of *store.Message, now time.Time) *modelEntry {
	if !modelHolds(of, now) {
		return nil
	}
	for key, e := range m.held {
		if key.Queue == of.Queue && key.ID != of.ID && !e.trace && e.m.DedupKey == of.DedupKey && modelHolds(&e.m, now) {
			return e
		}
	}
	return nil
}

// refusal tells whether a message is refused and because of what.
func (m *model) refusal(msg *store.Message, now time.Time, mode store.PutMode) (*modelEntry, error) {
	if old := m.held[msg.Key()]; old != nil {
		if mode&store.Overwrite == 0 {
			return old, store.ErrExists
		}
		if !old.trace && old.inFlight(now) {
			return old, store.ErrInFlight
		}
	}
	if holder := m.holder(msg, now); holder != nil {
		return holder, store.ErrDuplicate
	}
	return nil, nil
}

// put stores a message that is not refused.
func (m *model) put(msg store.Message, now time.Time) *modelEntry {
	key := msg.Key()
	e := &modelEntry{m: msg, gate: map[string]bool{}}
	if old := m.held[key]; old != nil {
		e.m.Version = old.m.Version
	} else {
		e.m.Version = 0
	}
	if msg.DueAt.IsZero() {
		e.m.DueAt = msg.FireAt
	}
	if msg.CreatedAt.IsZero() {
		e.m.CreatedAt = now
	}
	e.m.History = slices.Clone(msg.History[max(0, len(msg.History)-store.MaxHistory):])
	e.m.Gate, e.m.VisibleAt = nil, time.Time{}
	if e.m.State.Live() {
		e.m.VisibleAt = e.m.DueAt
		if msg.Gate != nil {
			m.resolve(e, msg.Gate)
		}
	}
	m.held[key] = e
	m.wrote(e, now)
	if !e.m.State.Live() {
		m.leave(key, now)
	}
	return e
}

// resolve makes a message wait for the live messages that the gate names.
func (m *model) resolve(e *modelEntry, g *store.Gate) {
	for key, other := range m.held {
		named := slices.Contains(g.IDs, key.ID) || g.Group != "" && other.m.Group == g.Group
		if named && key.Queue == e.m.Queue && key.ID != e.m.ID && !other.trace && other.m.State.Live() {
			e.gate[key.ID] = true
		}
	}
	if e.m.Waits = len(e.gate); e.m.Waits > 0 {
		e.m.VisibleAt = store.Never
	}
}

// leave takes a message that is live no more out of all gates.
func (m *model) leave(key store.Key, now time.Time) {
	for _, e := range m.held {
		if e.m.Queue != key.Queue || !e.gate[key.ID] {
			continue
		}
		delete(e.gate, key.ID)
		if e.m.Waits = len(e.gate); e.m.Waits == 0 {
			e.m.VisibleAt = e.m.DueAt
		}
		m.wrote(e, now)
	}
}

// finish is the end of a message: the entry says how. It is removed if its PurgeAt has come.
func (m *model) finish(e *modelEntry, now time.Time) {
	key := e.m.Key()
	e.gate, e.m.Waits, e.m.VisibleAt = map[string]bool{}, 0, time.Time{}
	m.wrote(e, now)
	if !e.m.PurgeAt.After(now) {
		delete(m.held, key)
		if e.m.Parent != "" {
			purge := now.Add(store.TraceTTL)
			m.held[key] = &modelEntry{trace: true, m: store.Message{Queue: key.Queue, ID: key.ID, State: store.Done, PurgeAt: purge, Version: e.m.Version}}
		}
	}
	m.leave(key, now)
}

// unlease makes a message nobody's.
func (e *modelEntry) unlease(state store.State) {
	e.m.State, e.m.Owner, e.m.Epoch, e.m.Stop = state, "", 0, false
}

// replaced returns the message with all that a change may write taken from another.
func (e *modelEntry) replaced(by store.Message) store.Message {
	was := e.m
	by.Queue, by.ID, by.CreatedAt, by.History, by.Gate = was.Queue, was.ID, was.CreatedAt, was.History, nil
	by.Version, by.UpdatedAt, by.VisibleAt, by.Waits = was.Version, was.UpdatedAt, was.VisibleAt, was.Waits
	by.Owner, by.Epoch, by.Stop = was.Owner, was.Epoch, was.Stop
	return by
}
