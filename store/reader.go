package store

import (
	"context"
	"time"
)

// Reader reads messages. It sees what was stored before it was called; it never blocks the hot path.
type Reader interface {
	// Get returns one message, live or finished, with payload and history. Error: ErrNotFound.
	Get(ctx context.Context, key Key) (Message, error)
	// Holder returns the address of the message of the queue that holds the dedup key at the instant. Error: ErrNotFound
	// when the key is free.
	Holder(ctx context.Context, queue, dedupKey string, now time.Time) (Key, error)
	// List returns a page of the messages that match. Paging by cursor neither repeats nor skips a message that does
	// not change meanwhile. Error: ErrBadCursor.
	List(ctx context.Context, query Query) (Page, error)
	// Count returns how many messages match; order, limit, offset and cursor are ignored.
	Count(ctx context.Context, query Query) (int64, error)
	// Queues returns the queues with a live message that is visible within the window, in the order of their names
	// from the one after After, at most Limit (zero: all), each with the earliest such instant. It reads by index,
	// never every message.
	Queues(ctx context.Context, window Window) ([]QueueHint, error)
}

// Query selects messages. Zero values select all. Conditions are joined by "and".
type Query struct {
	Queue   string  // exactly this queue
	Prefix  string  // or all queues whose names begin with it; ignored when Queue is set
	States  []State // any of these
	Kind    string
	Parent  string
	Group   string
	FireMin time.Time // FireAt ≥ FireMin
	FireMax time.Time // FireAt ≤ FireMax

	Order    Order
	Desc     bool
	Limit    int    // at most this many; zero: 100
	Offset   int    // skip this many; ignored with a Cursor
	Cursor   string // Page.Next of the page before; opaque
	Payloads bool   // fill Payload
}

// Order is what a list is sorted by; equal keys are ordered by id, then queue, in the same direction.
type Order uint8

// The orders.
const (
	ByCreated Order = iota
	ByFireAt
	ByFinished // selects finished messages only
)

// Page is a part of a list.
type Page struct {
	Messages []Message
	Next     string // Cursor of the page after; empty when this is the last
}

// Window is a range of instants, both ends included. A zero Max means Never; a zero Min has no bound.
type Window struct {
	Min, Max time.Time
	Prefix   string // only queues whose names begin with it
	After    string // only queues whose names sort after it
	Limit    int
}

// QueueHint says that something in a queue is visible at an instant.
type QueueHint struct {
	Queue string
	At    time.Time
}
