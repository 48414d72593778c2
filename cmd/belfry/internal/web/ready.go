package web

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"
)

// pingTimeout bounds a ping; /healthz has to answer within five seconds.
const pingTimeout = 4 * time.Second

// freshPing is how old the answer to a ping may be: however often a health check comes, the store is not asked more often.
const freshPing = time.Second

// Pinger asks a store whether it works, on behalf of many.
type Pinger struct {
	ping func(context.Context) error

	mu   sync.Mutex
	at   time.Time
	err  error
	busy chan struct{} // closed when the ping under way is answered; nil: none is
}

// NewPinger returns a Pinger that asks with ping.
func NewPinger(ping func(context.Context) error) *Pinger { return &Pinger{ping: ping} }

// errSlow means that no answer came in time.
var errSlow = errors.New("the store does not answer")

// Ping returns what the store answered within the last second, or else asks it. It returns within pingTimeout even if
// the store does not heed its context.
func (p *Pinger) Ping(ctx context.Context) error {
	p.mu.Lock()
	if !p.at.IsZero() && time.Since(p.at) < freshPing && p.busy == nil {
		defer p.mu.Unlock()
		return p.err
	}
	if p.busy == nil {
		p.busy = make(chan struct{})
		go p.ask(p.busy)
	}
	busy := p.busy
	p.mu.Unlock()
	timeout := time.NewTimer(pingTimeout)
	defer timeout.Stop()
	select {
	case <-busy:
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.err
	case <-timeout.C:
		return errSlow
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ask pings once.
func (p *Pinger) ask(busy chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), pingTimeout)
	defer cancel()
	err := p.ping(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at, p.err, p.busy = time.Now(), err, nil
	close(busy)
}

// Readiness tells whether the program can take requests. It begins as not ready.
type Readiness struct {
	store      *Pinger
	name       string
	durability string

	mu     sync.Mutex
	reason string // why it is not ready for good; empty: it may be
}

// NewReadiness returns the readiness of a program with a store of that name and durability.
func NewReadiness(store *Pinger, name, durability string) *Readiness {
	return &Readiness{store: store, name: name, durability: durability, reason: "starting"}
}

// Running notes that the program runs; from then on it is ready while the store answers.
func (r *Readiness) Running() { r.set("") }

// Ended turns the readiness red, for the reason.
func (r *Readiness) Ended(reason string) { r.set(reason) }

func (r *Readiness) set(reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reason = reason
}

// report is the body of an answer.
type report struct {
	Status     string   `json:"status"`
	Reasons    []string `json:"reasons,omitempty"`
	Store      string   `json:"store"`
	Durability string   `json:"durability"`
}

// reasons returns why the program is not ready; none: it is.
func (r *Readiness) reasons(ctx context.Context) []string {
	var reasons []string
	r.mu.Lock()
	if r.reason != "" {
		reasons = append(reasons, r.reason)
	}
	r.mu.Unlock()
	if err := r.store.Ping(ctx); err != nil {
		reasons = append(reasons, "the store cannot be reached") // why is in the log: this answer is public
	}
	return reasons
}

// ServeHTTP answers 200 or 503 and says why.
func (r *Readiness) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	answer := report{Status: "ready", Reasons: r.reasons(req.Context()), Store: r.name, Durability: r.durability}
	status := http.StatusOK
	if len(answer.Reasons) > 0 {
		answer.Status, status = "not ready", http.StatusServiceUnavailable
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer)
}
