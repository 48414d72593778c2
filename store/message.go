package store

import (
	"fmt"
	"time"
)

// Key addresses a message. Ids are unique within a queue among all that is stored, finished messages included.
// Both parts are compared byte for byte: case, trailing blanks and Unicode forms matter.
type Key struct {
	Queue string
	ID    string
}

// State is where a message is in its life. Due is not a state: it is VisibleAt ≤ now.
type State uint8

// The states. Scheduled and Leased are live; the others are finished.
const (
	// Scheduled waits for its VisibleAt.
	Scheduled State = iota + 1
	// Leased is held by a worker until its VisibleAt; then it is claimable again.
	Leased
	// Done was delivered.
	Done
	// Dead will not be tried again unless it is revived.
	Dead
	// Canceled was called off before it was delivered.
	Canceled
)

var stateNames = [...]string{Scheduled: "scheduled", Leased: "leased", Done: "done", Dead: "dead", Canceled: "canceled"}

// String returns the state's name in lower case.
func (s State) String() string {
	if s >= Scheduled && s <= Canceled {
		return stateNames[s]
	}
	return fmt.Sprintf("state(%d)", uint8(s))
}

// ParseState returns the state with the name.
func ParseState(name string) (State, error) {
	for s := Scheduled; s <= Canceled; s++ {
		if stateNames[s] == name {
			return s, nil
		}
	}
	return 0, fmt.Errorf("state %q is none of scheduled, leased, done, dead, canceled", name)
}

// MarshalText writes the state's name.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads a state's name.
func (s *State) UnmarshalText(text []byte) error {
	parsed, err := ParseState(string(text))
	*s = parsed
	return err
}

// Live reports whether the message can still be delivered.
func (s State) Live() bool { return s == Scheduled || s == Leased }

// Finished reports whether the message has reached its end.
func (s State) Finished() bool { return s == Done || s == Dead || s == Canceled }

// Message is the unit that waits and is delivered. A store keeps every field as it is given, byte for byte, except
// those it owns (marked so). Strings are valid UTF-8 without NUL, at most 255 bytes for Queue, ID, Kind, Target,
// Group, DedupKey and Parent; instants are whole milliseconds in UTC; the Client sees to both.
type Message struct {
	Queue string
	ID    string
	Kind  string // which handler, or what it is about

	Target  string            // the name of the target that delivers it, e.g. "http"; empty: an in-process handler
	Address string            // where to, in the target's terms: a URL, a subject
	Params  map[string]string // further settings of this delivery in the target's terms, e.g. "method"; "trace.…": its trace

	ContentType string
	Payload     []byte // nil and empty are told apart
	Headers     map[string]string
	Metadata    []byte // one JSON document, opaque to the engine, never sent; nil when there is none

	Priority int32 // lower first
	Group    string
	Parent   string // the id of the message whose settlement put this one; empty for all others

	// DedupKey is unique within the queue among live messages, and among finished ones until their DedupUntil.
	// Empty: none. What would not hold its key, such as an imported message that is finished, is never refused for it.
	DedupKey   string
	DedupUntil time.Time // zero: the key is free as soon as the message is finished

	FireAt    time.Time     // the instant that was asked for; only a reschedule changes it
	DueAt     time.Time     // the instant of the next delivery: FireAt, then that of each retry
	ExpiresAt time.Time     // not delivered at or after this instant; zero: never expires
	Timeout   time.Duration // bound of one delivery; zero: the target's own
	Retry     Retry
	Retention Retention

	// Gate names what this message waits for besides its instant. It is read by Put alone, which resolves it; what
	// is stored is Waits.
	Gate *Gate

	// What follows changes while the message lives.

	State    State
	Attempts int // deliveries with a known outcome
	Claims   int // claims, less those given back by Release

	LastError  string
	CreatedAt  time.Time // accepted
	UpdatedAt  time.Time // owned by the store: `now` of the last write but Extend
	FinishedAt time.Time // zero while live
	PurgeAt    time.Time // when a finished message may be removed; zero while live, Never: kept for ever

	// Version is owned by the store: it grows with every write but Extend and a stop mark, and begins at the accept
	// instant in microseconds, so that an id that is used again never repeats a version.
	Version int64
	// VisibleAt is owned by the store and is what claims go by: DueAt while scheduled, the lease's end while leased,
	// Never while a gate is closed. Zero when finished.
	VisibleAt time.Time
	Owner     string // owned by the store: the node that holds the lease; empty unless leased
	Epoch     int64  // owned by the store: the incarnation of Owner
	Stop      bool   // owned by the store: the holder is asked to stop
	Waits     int    // owned by the store: how many messages a closed gate still waits for

	// History is the last attempts, oldest first, at most MaxHistory. Only Get fills it. Put stores what is given
	// (for imports); Replace leaves what is stored.
	History []Attempt
}

// Key returns the message's address.
func (m *Message) Key() Key { return Key{m.Queue, m.ID} }

// Token returns the token by which the holder of the lease settles and extends. It is meaningful only while the
// message is leased.
func (m *Message) Token() Token { return Token{m.Queue, m.ID, m.Version} }

// Token is the proof of a claim: a plain value, valid in every process. It is current until the message is claimed
// again, replaced, revoked, forfeited or settled, even if its lease has run out meanwhile; from then on it is stale and
// changes nothing. Versions only grow, so of two tokens of one message the larger Version is the later claim.
type Token struct {
	Queue   string
	ID      string
	Version int64
}

// MaxHistory is how many attempts a store keeps beside a message.
const MaxHistory = 20

// Attempt is the record of one delivery with a known outcome.
type Attempt struct {
	Number    int           `json:"n"` // from 1
	StartedAt time.Time     `json:"at"`
	Duration  time.Duration `json:"ns"`
	Error     string        `json:"error,omitempty"`    // empty on success
	Status    int           `json:"status,omitempty"`   // the target's status code, e.g. of HTTP; zero when there is none
	Response  []byte        `json:"response,omitempty"` // the beginning of what the target answered, bounded by the engine
	Owner     string        `json:"owner,omitempty"`    // the node that delivered
}

// Retention says how long a finished message is kept, by the state it ended in; canceled counts as done.
// Zero: removed at once. Forever: until somebody deletes it.
type Retention struct {
	Done time.Duration `json:"done,omitempty"`
	Dead time.Duration `json:"dead,omitempty"`
}

// Forever is the Retention of what is never purged.
const Forever time.Duration = -1

// Gate is what a message waits for: the messages of its own queue that are live when it is put and have one of the
// IDs or the Group. Each leaves the gate when it finishes or is removed; the last one opens it, and the message then
// becomes visible at its DueAt. A gate that finds nothing to wait for is open. A message never waits for itself, and
// each departure is a write to the message that waits: its version grows.
type Gate struct {
	IDs   []string
	Group string
}
