package store

import "errors"

// Errors of the contract. A store returns them, wrapped or not, so that errors.Is finds them; everything else a store
// returns is a failure of the database and may be retried by the caller.
var (
	// ErrNotFound: nothing is stored under the key or name.
	ErrNotFound = errors.New("not found")
	// ErrExists: the id is taken, by a waiting message, a finished one that is still kept, or the trace of a follow-up.
	ErrExists = errors.New("id already exists")
	// ErrDuplicate: another message of the queue holds the dedup key.
	ErrDuplicate = errors.New("dedup key already in use")
	// ErrConflict: the expected version is not the stored one; read again and decide again.
	ErrConflict = errors.New("version conflict")
	// ErrInFlight: the message is under a live lease, so its delivery may have begun.
	ErrInFlight = errors.New("message is in flight")
	// ErrLeaseLost: the token is stale; nothing was changed.
	ErrLeaseLost = errors.New("lease lost")
	// ErrClosed: the store was closed.
	ErrClosed = errors.New("store is closed")
	// ErrAborted: an atomic batch stored nothing because another of its messages was refused.
	ErrAborted = errors.New("batch aborted")
	// ErrBadCursor: a list cursor that no list has given, or one of a list in another order.
	ErrBadCursor = errors.New("bad cursor")
)
