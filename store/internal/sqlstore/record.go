package sqlstore

import (
	"database/sql"

	"github.com/belfryhq/belfry/store"
)

// record is a row of messages or of finished messages, and what goes between it and a store.Message.
type record struct {
	n     int64 // names the row: the message's first version
	queue string
	id    string

	state     int64
	priority  int64
	visibleAt int64
	dueAt     int64
	fireAt    int64
	createdAt int64
	updatedAt int64
	version   int64
	attempts  int64
	claims    int64

	owner   string
	epoch   int64
	stop    int64
	waits   int64
	watched int64 // a gate may wait for the message

	finishedAt int64
	purgeAt    int64
	expiresAt  sql.NullInt64

	kind        string
	target      string
	address     string
	contentType string
	group       string
	parent      string
	dedupKey    string
	dedupUntil  sql.NullInt64
	retainDone  int64
	retainDead  int64
	timeout     int64
	lastError   string
	details     string

	body     int64 // 1: metadata and payload are in bodies
	metadata []byte
	payload  []byte
	history  string

	apart struct{ metadata, payload []byte } // what goes to bodies
	order struct{ ahead, visibleAt int64 }   // of a message that was just leased: as it stood before
}

// recordColumns names the columns of a record, in the order of pointers: the arguments of a query on a whole record,
// and what a query returns of one. The columns that only one of the tables has are constants in the queries on the other.
var recordColumns = []string{
	"n", "queue", "id",
	"state", "priority", "visible_at", "due_at", "fire_at", "created_at", "updated_at", "version", "attempts", "claims",
	"owner", "epoch", "stop", "waits", "watched",
	"finished_at", "purge_at", "expires_at",
	"kind", "target", "address", "content_type", "group_name", "parent", "dedup_key", "dedup_until",
	"retain_done", "retain_dead", "timeout_ns", "last_error", "details",
	"body", "metadata", "payload", "history",
}

// recordWidth is the number of a record's columns.
const recordWidth = 38

// bareWidth is the number of columns without payload and history.
const bareWidth = recordWidth - 2

// pointers are the record's columns as arguments of a query and as the destinations of its result.
func (r *record) pointers() [recordWidth]any {
	return [recordWidth]any{
		&r.n, &r.queue, &r.id,
		&r.state, &r.priority, &r.visibleAt, &r.dueAt, &r.fireAt, &r.createdAt, &r.updatedAt, &r.version, &r.attempts, &r.claims,
		&r.owner, &r.epoch, &r.stop, &r.waits, &r.watched,
		&r.finishedAt, &r.purgeAt, &r.expiresAt,
		&r.kind, &r.target, &r.address, &r.contentType, &r.group, &r.parent, &r.dedupKey, &r.dedupUntil,
		&r.retainDone, &r.retainDead, &r.timeout, &r.lastError, &r.details,
		&r.body, &r.metadata, &r.payload, &r.history,
	}
}

// live reports whether the record's message is live.
func (r *record) live() bool { return store.State(r.state).Live() }

// inFlight reports whether the message is under a lease that is alive at the instant.
func (r *record) inFlight(now int64) bool {
	return store.State(r.state) == store.Leased && r.visibleAt > now
}

// wouldHold reports whether the message, once stored, keeps its dedup key from others at the instant.
func (r *record) wouldHold(now int64) bool {
	return r.dedupKey != "" && (r.live() || r.dedupUntil.Valid && r.dedupUntil.Int64 > now)
}

// encode takes over from a message what callers may write: all but what the store owns, CreatedAt, State and History.
// Payload and metadata that are larger than inline together go to bodies.
func (r *record) encode(m *store.Message, inline int) error {
	r.queue, r.id = m.Queue, m.ID
	r.priority = int64(m.Priority)
	r.fireAt, r.dueAt = ceil(m.FireAt), ceil(m.DueAt)
	if m.DueAt.IsZero() {
		r.dueAt = r.fireAt
	}
	r.attempts, r.claims = int64(m.Attempts), int64(m.Claims)
	r.finishedAt, r.purgeAt, r.expiresAt = ceil(m.FinishedAt), ceil(m.PurgeAt), optional(m.ExpiresAt)
	r.kind, r.target, r.address, r.contentType = m.Kind, m.Target, m.Address, m.ContentType
	r.group, r.parent = m.Group, m.Parent
	r.dedupKey, r.dedupUntil = m.DedupKey, optional(m.DedupUntil)
	r.retainDone, r.retainDead = int64(m.Retention.Done), int64(m.Retention.Dead)
	r.timeout, r.lastError = int64(m.Timeout), m.LastError
	r.body, r.metadata, r.payload = 0, m.Metadata, m.Payload
	if inline >= 0 && len(m.Metadata)+len(m.Payload) > inline {
		r.apart.metadata, r.apart.payload = r.metadata, r.payload
		r.body, r.metadata, r.payload = 1, nil, nil
	}
	var err error
	r.details, err = encodeDetails(m)
	return err
}

// settle gives the record a state, without a lease, and the VisibleAt that follows from it.
func (r *record) settle(state store.State) {
	r.state = int64(state)
	r.owner, r.epoch, r.stop = "", 0, 0
	switch {
	case state.Finished():
		r.visibleAt, r.waits, r.watched = 0, 0, 0
	case r.waits > 0:
		r.visibleAt = never
	default:
		r.visibleAt = r.dueAt
	}
}

// message returns the message with whatever was read of payload and history.
func (r *record) message() (store.Message, error) {
	m := store.Message{
		Queue: r.queue, ID: r.id, Kind: r.kind,
		Target: r.target, Address: r.address, ContentType: r.contentType,
		Payload: r.payload, Metadata: r.metadata,
		Priority: int32(r.priority), Group: r.group, Parent: r.parent,
		DedupKey: r.dedupKey, DedupUntil: optionalInstant(r.dedupUntil),
		FireAt: instant(r.fireAt), DueAt: instant(r.dueAt), ExpiresAt: optionalInstant(r.expiresAt),
		State: store.State(r.state), Attempts: int(r.attempts), Claims: int(r.claims), LastError: r.lastError,
		CreatedAt: instant(r.createdAt), UpdatedAt: instant(r.updatedAt), Version: r.version,
	}
	m.Timeout = duration(r.timeout)
	m.Retention = store.Retention{Done: duration(r.retainDone), Dead: duration(r.retainDead)}
	if r.live() {
		m.VisibleAt = instant(r.visibleAt)
		m.Owner, m.Epoch, m.Stop, m.Waits = r.owner, r.epoch, r.stop != 0, int(r.waits)
		if m.State == store.Scheduled {
			m.Owner, m.Epoch, m.Stop = "", 0, false
		}
	} else {
		m.FinishedAt, m.PurgeAt = instant(r.finishedAt), instant(r.purgeAt)
	}
	if err := decodeDetails(r.details, &m); err != nil {
		return store.Message{}, err
	}
	var err error
	m.History, err = decodeHistory(r.history)
	return m, err
}

// messages returns the records as messages.
func messages(records []*record) ([]store.Message, error) {
	if len(records) == 0 {
		return nil, nil
	}
	out := make([]store.Message, len(records))
	for i, r := range records {
		var err error
		if out[i], err = r.message(); err != nil {
			return nil, err
		}
	}
	return out, nil
}
