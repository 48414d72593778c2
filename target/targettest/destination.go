package targettest

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/belfryhq/belfry/target"
)

// Kind is a way in which a destination treats a delivery.
type Kind uint8

// The kinds of answers.
const (
	// Accept takes the delivery.
	Accept Kind = iota
	// Fail says that it could not take it this time.
	Fail
	// Refuse says that it will never take it.
	Refuse
	// Cut ends the connection without an answer.
	Cut
	// Echo sends back what it received, as it is, in place of an answer that the protocol allows.
	Echo
	// Hang never answers.
	Hang
	// Unreachable cannot be reached at all.
	Unreachable
	// Status answers with Answer.Status in protocols that have the status codes of HTTP.
	Status
)

var kindNames = [...]string{"accept", "fail", "refuse", "cut", "echo", "hang", "unreachable", "status"}

// String returns the kind's name in lower case.
func (k Kind) String() string { return kindNames[k] }

// Answer is how a destination treats deliveries.
type Answer struct {
	Kind       Kind
	Status     int    // of Status: the code
	RetryAfter string // of Status: the value of the field Retry-After; empty: none
	Body       []byte // what is sent with the answer, where the protocol has room for it
}

// Arrival is a delivery as the destination received it.
type Arrival struct {
	Payload     []byte
	ContentType string
	Headers     map[string]string // names in any case
}

// Destination is what a target under test delivers to.
type Destination interface {
	// Delivery returns a delivery to this destination: its address and its parameters. The laws fill in the rest.
	Delivery() target.Delivery
	// Answer says how deliveries are treated from now on, and reports whether the destination can treat them so. A
	// new destination accepts.
	Answer(a Answer) bool
	// Arrivals waits until n deliveries have arrived or ctx has ended and returns all that have, oldest first,
	// whatever they were answered. A delivery that was not received completely has not arrived.
	Arrivals(ctx context.Context, n int) []Arrival
}

// Recorder keeps arrivals and lets others wait for them: the common part of destinations. Its zero value is ready.
type Recorder struct {
	mu       sync.Mutex
	arrivals []Arrival
	grown    chan struct{} // closed when the next one arrives
}

// Record adds an arrival, of which it keeps a copy.
func (r *Recorder) Record(a Arrival) {
	a.Payload, a.Headers = bytes.Clone(a.Payload), maps.Clone(a.Headers)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.arrivals = append(r.arrivals, a)
	if r.grown != nil {
		close(r.grown)
		r.grown = nil
	}
}

// Arrivals waits until n deliveries have arrived or ctx has ended and returns all that have, oldest first.
func (r *Recorder) Arrivals(ctx context.Context, n int) []Arrival {
	for {
		got, grown := r.snapshot()
		if len(got) >= n {
			return got
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return got
		}
	}
}

// snapshot returns what has arrived and what is closed when more does.
func (r *Recorder) snapshot() ([]Arrival, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.grown == nil {
		r.grown = make(chan struct{})
	}
	return slices.Clone(r.arrivals), r.grown
}
