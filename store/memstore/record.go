package memstore

import (
	"bytes"
	"maps"
	"slices"
	"time"

	"github.com/belfryhq/belfry/store"
)

// record is a message as it is kept: store.Message without what most messages share (shape) or lack (rare), since
// ten million of them wait in one process.
type record struct {
	queue *queue
	id    string
	shape *shape
	rare  *rare // nil when all of it is zero

	address string
	headers map[string]string
	payload []byte

	fireAt    instant
	dueAt     instant
	createdAt instant
	updatedAt instant
	visibleAt instant

	version  int64
	attempts int
	claims   int

	holder   *holder // who holds the lease; nil unless leased
	leasedAt int32   // the place in queue.leased
	priority int32
	state    store.State // zero: the trace of a follow-up
	stop     bool
}

// shape is what messages of a queue commonly have in common. It is shared and never changed.
type shape struct {
	kind        string
	target      string
	contentType string
	params      map[string]string
	timeout     time.Duration
	retry       store.Retry
	retention   store.Retention
}

// rare is what few waiting messages have.
type rare struct {
	metadata   []byte
	group      string
	parent     string
	dedupKey   string
	lastError  string
	dedupUntil instant
	expiresAt  instant
	finishedAt instant
	purgeAt    instant
	history    []store.Attempt
	gate       []string // the ids a closed gate waited for when the message was put
	waits      int      // how many of them are left
}

// plain is the rare part of messages that have none.
var plain = rare{dedupUntil: unset, expiresAt: unset, finishedAt: unset, purgeAt: unset}

// holder is the incarnation of a node that holds leases; those of one claim share it.
type holder struct {
	owner string
	epoch int64
}

// trace is the state of a record that only keeps an id taken.
const trace store.State = 0

// extra returns the rare part for reading.
func (r *record) extra() *rare {
	if r.rare == nil {
		return &plain
	}
	return r.rare
}

// own returns the rare part for writing.
func (r *record) own() *rare {
	if r.rare == nil {
		fresh := plain
		r.rare = &fresh
	}
	return r.rare
}

// inFlight reports whether the message is under a lease that is alive at the instant.
func (r *record) inFlight(now instant) bool {
	return r.state == store.Leased && r.visibleAt > now
}

// holds reports whether the message keeps its dedup key from others at the instant.
func (r *record) holds(now instant) bool {
	x := r.extra()
	return x.dedupKey != "" && (r.state.Live() || r.state.Finished() && x.dedupUntil > now)
}

// write takes over from a message what callers may write: all but what the store owns, CreatedAt, State and History.
func (r *record) write(m *store.Message) {
	r.shape = r.queue.shapeOf(m)
	r.address = m.Address
	r.headers = maps.Clone(m.Headers)
	r.payload = bytes.Clone(m.Payload)
	r.fireAt, r.dueAt = at(m.FireAt), at(m.DueAt)
	if r.dueAt == unset {
		r.dueAt = r.fireAt
	}
	r.attempts, r.claims, r.priority = m.Attempts, m.Claims, m.Priority

	x := plain
	if r.rare != nil {
		x.history, x.gate, x.waits = r.rare.history, r.rare.gate, r.rare.waits
	}
	x.metadata = bytes.Clone(m.Metadata)
	x.group, x.parent, x.dedupKey, x.lastError = m.Group, m.Parent, m.DedupKey, m.LastError
	x.dedupUntil, x.expiresAt = at(m.DedupUntil), at(m.ExpiresAt)
	x.finishedAt, x.purgeAt = at(m.FinishedAt), at(m.PurgeAt)
	r.setRare(x)
}

// setRare replaces the rare part; one with nothing in it takes no memory.
func (r *record) setRare(x rare) {
	if x.isPlain() {
		r.rare = nil
		return
	}
	fresh := x
	r.rare = &fresh
}

func (x *rare) isPlain() bool {
	return x.metadata == nil && x.group == "" && x.parent == "" && x.dedupKey == "" && x.lastError == "" &&
		x.dedupUntil == unset && x.expiresAt == unset && x.finishedAt == unset && x.purgeAt == unset &&
		len(x.history) == 0 && x.waits == 0
}

// message returns the message without payload and history; the caller owns it.
func (r *record) message() store.Message {
	x, s := r.extra(), r.shape
	m := store.Message{
		Queue: r.queue.name, ID: r.id, Kind: s.kind,
		Target: s.target, Address: r.address, Params: maps.Clone(s.params),
		ContentType: s.contentType, Headers: maps.Clone(r.headers), Metadata: bytes.Clone(x.metadata),
		Priority: r.priority, Group: x.group, Parent: x.parent,
		DedupKey: x.dedupKey, DedupUntil: x.dedupUntil.time(),
		FireAt: r.fireAt.time(), DueAt: r.dueAt.time(), ExpiresAt: x.expiresAt.time(),
		Timeout: s.timeout, Retry: s.retry, Retention: s.retention,
		State: r.state, Attempts: r.attempts, Claims: r.claims, LastError: x.lastError,
		CreatedAt: r.createdAt.time(), UpdatedAt: r.updatedAt.time(),
		FinishedAt: x.finishedAt.time(), PurgeAt: x.purgeAt.time(),
		Version: r.version, VisibleAt: r.visibleAt.time(), Stop: r.stop, Waits: x.waits,
	}
	m.Retry.Delays = slices.Clone(s.retry.Delays)
	if r.holder != nil {
		m.Owner, m.Epoch = r.holder.owner, r.holder.epoch
	}
	return m
}

// full returns the message with its payload; the caller owns it.
func (r *record) full() store.Message {
	m := r.message()
	m.Payload = bytes.Clone(r.payload)
	return m
}

// traceMessage is all that is known of a follow-up that left no message.
func (r *record) traceMessage() store.Message {
	return store.Message{Queue: r.queue.name, ID: r.id, State: store.Done}
}

// cloneHistory returns the last attempts, at most store.MaxHistory, independent of the argument.
func cloneHistory(attempts []store.Attempt) []store.Attempt {
	if len(attempts) == 0 {
		return nil
	}
	out := slices.Clone(attempts[max(0, len(attempts)-store.MaxHistory):])
	for i := range out {
		out[i] = cloneAttempt(out[i])
	}
	return out
}

func cloneAttempt(a store.Attempt) store.Attempt {
	a.Response = bytes.Clone(a.Response)
	if !a.StartedAt.IsZero() {
		a.StartedAt = a.StartedAt.Round(0).UTC()
	}
	return a
}
