// Package dispatch is the machine that turns stored messages into deliveries: it sleeps until something is due, claims it
// a little ahead, fires it at its instant, keeps its lease, and settles it. It decides nothing about a message: that is
// package lifecycle. DESIGN.md beside this file tells how the parts work together.
package dispatch

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/belfryhq/belfry/internal/combine"
	"github.com/belfryhq/belfry/internal/engineclock"
	"github.com/belfryhq/belfry/store"
	"github.com/belfryhq/belfry/target"
)

// Config is what a Dispatcher works with. All fields are needed unless they say otherwise.
type Config struct {
	Line   store.Line
	Queues func(context.Context, store.Window) ([]store.QueueHint, error) // the safety scan's question
	Clock  *engineclock.Clock
	Logger *slog.Logger
	Target target.Target                // delivers everything; routes by Delivery.Target
	Lane   func(target.Delivery) string // what a slow destination is recognised by; empty: no lane

	// Serves tells whether a queue is this worker's, and how many of its messages are delivered at once.
	Serves func(queue string) (concurrency int, ok bool)
	// ScanPrefix is the common prefix of all queues that Serves accepts.
	ScanPrefix string
	// Hint passes on what settlements made due: retries and follow-ups.
	Hint func([]store.QueueHint)
	// Revision is told the docs' revision after each claim; it does not block.
	Revision func(int64)

	Owner string
	Epoch int64

	Lease        time.Duration
	Ahead        time.Duration
	Safety       func() time.Duration // the present interval of the safety scan
	Grace        time.Duration
	Abandon      time.Duration // after the grace: how long canceled deliveries have to return
	StoreTimeout time.Duration
	LaneLimit    int
	Claimers     int // claims under way at once
	SettleWrites int // settlement batches under way at once

	// The causes of contexts that end early.
	ErrShutdown, ErrCanceled error
}

// Dispatcher is one worker's machine. Run it once.
type Dispatcher struct {
	cfg     Config
	settles *combine.Group[store.Settlement, error]
	claim   chan struct{} // signals the claim loop; holds one
	fire    chan struct{} // signals the fire loop; holds one
	keep    chan struct{} // signals the extender that leases are in hand; holds one

	deliveries sync.WaitGroup
	settling   context.Context // outlives Run's context until the end of the grace
	endSettles context.CancelFunc

	mu       sync.Mutex
	queues   map[string]*queue
	sleeping queueHeap            // queues by the instant at which to claim from them
	ready    fifo[*queue]         // queues to claim from now, in turn
	held     map[store.Key]*lease // every lease in hand
	ahead    leaseHeap            // leases claimed ahead, by DueAt
	lanes    map[string]*lane
	claiming int   // claims under way
	stopping bool  // no claims any more
	ended    error // why deliveries shall not go on; nil: they shall
	broken   bool  // a settlement could not be written: no claims until one can
	pause    time.Time
	failures int // claims that failed in a row

	stats stats
}

// stats counts what happened, for gauges and logs.
type stats struct {
	lost, claims, claimed atomic.Int64
}

// New makes a dispatcher.
func New(cfg Config) *Dispatcher {
	d := &Dispatcher{
		cfg:    cfg,
		claim:  make(chan struct{}, 1),
		fire:   make(chan struct{}, 1),
		keep:   make(chan struct{}, 1),
		queues: map[string]*queue{},
		held:   map[store.Key]*lease{},
		lanes:  map[string]*lane{},
	}
	d.settles = combine.New(d.writeSettlements, combine.Limits[store.Settlement]{
		MaxItems: 500, InFlight: max(cfg.SettleWrites, 1), Timeout: cfg.StoreTimeout,
	})
	return d
}

// Run works until ctx ends, then stops gracefully: no more claims, what was not started is given back, what runs has the
// grace period to finish and is then canceled. It returns nil, or an error when deliveries did not end even so.
func (d *Dispatcher) Run(ctx context.Context) error {
	d.settling, d.endSettles = context.WithCancel(context.WithoutCancel(ctx))
	defer d.endSettles()
	service, stopServices := context.WithCancel(context.WithoutCancel(ctx))
	defer stopServices()

	var claims, services sync.WaitGroup
	services.Go(func() { d.runExtender(service) })
	services.Go(func() { d.runFire(service) })
	claims.Go(func() { d.runScan(ctx) })
	claims.Go(func() { d.runClaims(ctx) })
	<-ctx.Done()
	d.mu.Lock()
	d.stopping = true
	d.mu.Unlock()
	claims.Wait()

	d.mu.Lock()
	d.giveBack(func(*lease) bool { return true })
	d.mu.Unlock()
	err := d.drain()
	stopServices()
	services.Wait()
	return err
}

// drain waits for what runs: through the grace period, then canceled.
func (d *Dispatcher) drain() error {
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		d.deliveries.Wait()
	}()
	if waitFor(finished, d.cfg.Grace) {
		return nil
	}
	d.cancelAll(d.cfg.ErrShutdown)
	if waitFor(finished, d.cfg.Abandon) {
		return nil
	}
	d.endSettles()
	if waitFor(finished, d.cfg.Abandon/4) {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return fmt.Errorf("%d deliveries did not end within the grace period of %v; their messages come due again when their leases end",
		len(d.held), d.cfg.Grace)
}

func waitFor(done <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// cancelAll ends the contexts of all running deliveries.
func (d *Dispatcher) cancelAll(cause error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = cause
	for _, l := range d.held {
		if l.cancel != nil {
			l.cancel(cause)
		}
	}
}

// Stats is a snapshot of a dispatcher.
type Stats struct {
	Held    int   // leases in hand
	Running int   // deliveries under way
	Queues  int   // queues known
	Lost    int64 // leases lost since the start
	Claims  int64 // claims made
	Claimed int64 // messages claimed
}

// Stats returns what the dispatcher is doing.
func (d *Dispatcher) Stats() Stats {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := Stats{Held: len(d.held), Queues: len(d.queues), Lost: d.stats.lost.Load(),
		Claims: d.stats.claims.Load(), Claimed: d.stats.claimed.Load()}
	for _, l := range d.held {
		if l.phase == running {
			s.Running++
		}
	}
	return s
}

// notify makes a signal without waiting.
func notify(signal chan<- struct{}) {
	select {
	case signal <- struct{}{}:
	default:
	}
}
