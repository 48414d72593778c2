package store

import (
	"context"
	"time"
)

// The interfaces below are optional: the engine asks a store for each by Power and does without where it is missing, at
// the cost the comment names.

// Power returns the store, or the first store it wraps (by a method Unwrap() Store), that has the optional power T.
func Power[T any](s Store) (T, bool) {
	for s != nil {
		if power, ok := s.(T); ok {
			return power, true
		}
		wrapper, ok := s.(interface{ Unwrap() Store })
		if !ok {
			break
		}
		s = wrapper.Unwrap()
	}
	var none T
	return none, false
}

// Waker carries wake-ups between processes. Without it a process learns of another's earlier message by its safety scan.
// A store that is a Waker also tells its listeners by itself when a gate opens.
type Waker interface {
	// Wake tells every listener, in this process and others, about the instants. It is best effort and cheap.
	Wake(ctx context.Context, hints []QueueHint) error
	// Listen calls back for each wake-up until ctx ends or the connection is lost, and returns why. The callback
	// does not block and is called by one goroutine at a time. ready is called once wake-ups sent from then on are heard.
	Listen(ctx context.Context, ready func(), heard func([]QueueHint)) error
}

// Transactor accepts and changes messages inside the caller's own database transaction. Without it there is no
// transactional scheduling on that store.
type Transactor interface {
	// InTx returns a Writer in the transaction, which must be one of the store's driver and of its database.
	InTx(tx any) (Writer, error)
}

// Writer is what can be done inside a caller's transaction; what it did takes effect when the transaction commits. It is
// used by one goroutine at a time, as the transaction is. A call that fails leaves the transaction as it was before the
// call wherever the database can do that.
type Writer interface {
	// Get returns one message, live or finished, as the transaction sees it, and keeps others from changing it until
	// the transaction ends. Error: ErrNotFound.
	Get(ctx context.Context, key Key) (Message, error)
	Put(ctx context.Context, now time.Time, messages []Message, mode PutMode) ([]PutResult, error)
	Replace(ctx context.Context, now time.Time, changes []Change) ([]error, error)
	Wake(ctx context.Context, hints []QueueHint) error
}

// Paralleler tells how many writes of one kind (accepts, claims, settlements) at once serve the store best. Without it: one,
// as for a store in the process.
type Paralleler interface {
	Parallel() int
}

// Clocker tells the database's own time. Without it, and where Claimed.StoreNow is zero, the local clock decides.
type Clocker interface {
	Now(ctx context.Context) (time.Time, error)
}
