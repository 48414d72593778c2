package store

import (
	"context"
	"time"
)

// Keeper is housekeeping and what is not a message.
type Keeper interface {
	// Purge removes finished messages and traces whose time has come, oldest PurgeAt first, at most limit, and
	// returns how many; fewer than limit means that none are left.
	Purge(ctx context.Context, now time.Time, limit int) (int, error)
	// Docs returns the records that are not messages.
	Docs() Docs
	// Ping answers nil when the store can serve reads and writes.
	Ping(ctx context.Context) error
	// Inspect tells what the store is and what its acknowledgements are worth.
	Inspect(ctx context.Context) (Info, error)
	// Close waits for what is under way and ends the store; later calls return ErrClosed. It may be called twice.
	Close() error
}

// Docs are small named records with versions: configuration of queues, incarnations of nodes, registries. Every write
// raises the store-wide revision that Claim returns.
type Docs interface {
	// Get returns a doc. Error: ErrNotFound.
	Get(ctx context.Context, name string) (Doc, error)
	// Put writes a doc if its Version is the stored one, zero meaning that there is none yet, and returns the new
	// version, which is larger than any the name ever had. Error: ErrConflict.
	Put(ctx context.Context, doc Doc) (int64, error)
	// Delete removes a doc if the version is the stored one. Errors: ErrNotFound, ErrConflict.
	Delete(ctx context.Context, name string, version int64) error
	// List returns docs whose names begin with the prefix and sort after `after`, in the order of names, at most
	// limit (zero: all).
	List(ctx context.Context, prefix, after string, limit int) ([]Doc, error)
	// Revision returns the store-wide revision; it changes with every write.
	Revision(ctx context.Context) (int64, error)
}

// Doc is a named record.
type Doc struct {
	Name    string
	Version int64
	Body    []byte
}

// Info describes a store as it is set up.
type Info struct {
	Name       string            // e.g. "sqlite"
	Version    string            // of the database
	Schema     int               // of its tables; zero where there are none
	Durability Durability        // what an acknowledgement survives
	Details    map[string]string // the settings it was read from
}

// Durability is what an acknowledged write survives.
type Durability uint8

// The classes.
const (
	// Volatile is lost with the process.
	Volatile Durability = iota
	// Weak survives the process, not a power cut.
	Weak
	// Strict survives a power cut.
	Strict
)

// String returns the class's name in lower case.
func (d Durability) String() string {
	switch d {
	case Strict:
		return "strict"
	case Weak:
		return "weak"
	default:
		return "volatile"
	}
}
