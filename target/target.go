// Package target is the contract between Belfry and a destination: what delivers a due message somewhere.
//
// A Target has one method. What became of a delivery is its error: nil means delivered, a plain error is an attempt that
// failed and is tried again by the message's policy, and Permanent, RetryAfter and Snooze say more. A Target is called
// concurrently. It ends when its context ends, with an error that wraps the context's cause unless the destination has
// the message already, and it ends by itself after the Delivery's Timeout. It changes nothing of the Delivery, keeps
// nothing of it, and puts no secret into an error: no header value, no user info or query of a URL, no payload.
package target

import (
	"context"
	"time"
)

// Target delivers messages.
type Target interface {
	// Deliver hands one message over and returns when the destination has it, has refused it, or ctx has ended.
	Deliver(ctx context.Context, d Delivery) error
}

// Func is a function as a Target.
type Func func(ctx context.Context, d Delivery) error

// Deliver calls f.
func (f Func) Deliver(ctx context.Context, d Delivery) error { return f(ctx, d) }

// Checker is a Target that can tell when a message is accepted that it will never be able to deliver it: a malformed
// address, a header that the protocol forbids. The error names the field, the value and the remedy.
type Checker interface {
	Check(d Delivery) error
}

// Laner is a Target whose destinations differ: deliveries of one lane share a limit of concurrency, so that a slow
// destination delays no other. The lane of HTTP is the URL's host and port.
type Laner interface {
	Lane(d Delivery) string
}

// Delivery is one attempt to deliver one message.
type Delivery struct {
	Queue       string
	ID          string // the same in every attempt
	Kind        string
	Target      string // the name the target has in the worker's settings; empty: an in-process handler
	Address     string
	Params      map[string]string // settings in the target's terms; names that begin with TracePrefix are none, and no business of the target
	ContentType string
	Payload     []byte
	Headers     map[string]string
	Metadata    []byte

	Attempt     int       // this attempt's number, from 1
	MaxAttempts int       // zero: no limit
	Fence       int64     // the lease's version: larger in every later claim of the message
	FireAt      time.Time // the instant that was asked for
	DueAt       time.Time // the instant of this attempt
	CreatedAt   time.Time
	Timeout     time.Duration // the message's own bound of one Deliver; zero: the target's default

	// Lease is the hold on the message while it is delivered; nil in tests and outside the engine.
	Lease Lease
	// Observed, when not nil, receives what the target learned besides the verdict.
	Observed *Observation
}

// TracePrefix begins the names of params in which a trace travels with a message, from its accept to its deliveries.
const TracePrefix = "trace."

// Lease is a delivery's hold on its message. The engine extends it by itself while the delivery runs.
type Lease interface {
	// Until returns the instant up to which nobody else can claim the message, as of now.
	Until() time.Time
	// Extend moves the delivery's deadline (its Timeout) to d from now.
	Extend(d time.Duration)
	// Progress returns how long the delivery has been running.
	Progress() time.Duration
}

// Observation is what a target learned in a delivery.
type Observation struct {
	Status   int    // the protocol's status code
	Response []byte // the beginning of the answer
}

// Observe records the destination's status code and the beginning of its answer with the attempt. It may be called
// without Observed, and then does nothing.
func (d *Delivery) Observe(status int, response []byte) {
	if d.Observed != nil {
		d.Observed.Status, d.Observed.Response = status, response
	}
}
