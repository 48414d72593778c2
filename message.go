package belfry

import (
	"github.com/belfryhq/belfry/store"
	"github.com/belfryhq/belfry/target"
)

// The vocabulary of the contracts, under the names by which users of the library meet it.
type (
	// Message is the unit that waits and is delivered.
	Message = store.Message
	// State is where a message is in its life.
	State = store.State
	// Retention says how long a finished message is kept.
	Retention = store.Retention
	// RetryPolicy says how often and when a failed delivery is tried again.
	RetryPolicy = store.Retry
	// Backoff is the shape of the delays between attempts.
	Backoff = store.Backoff
	// PutMode says what Client.Put does with what is stored already.
	PutMode = store.PutMode
	// PutResult is what became of one message of Client.Put.
	PutResult = store.PutResult
	// Attempt is the record of one delivery with a known outcome.
	Attempt = store.Attempt
	// Gate is what a message waits for besides its instant.
	Gate = store.Gate
	// Query selects messages for List and Count.
	Query = store.Query
	// Order is what a list is sorted by.
	Order = store.Order
	// Page is a part of a list.
	Page = store.Page
	// Delivery is one attempt to deliver one message, as handlers and targets see it.
	Delivery = target.Delivery
	// TargetFunc is a function as a Target.
	TargetFunc = target.Func
	// Target delivers messages somewhere.
	Target = target.Target
)

// The states of a message.
const (
	Scheduled = store.Scheduled
	Leased    = store.Leased
	Done      = store.Done
	Dead      = store.Dead
	Canceled  = store.Canceled
)

// The backoffs.
const (
	Exponential = store.Exponential
	Linear      = store.Linear
	Fixed       = store.Fixed
	List        = store.List
)

// The flags of a PutMode.
const (
	Overwrite = store.Overwrite
	Atomic    = store.Atomic
)

// The orders of a list.
const (
	ByCreated  = store.ByCreated
	ByFireAt   = store.ByFireAt
	ByFinished = store.ByFinished
)

// ParseState returns the state with the name.
func ParseState(name string) (State, error) { return store.ParseState(name) }

// Forever is the Retention of what is never purged.
const Forever = store.Forever
