package belfry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/belfryhq/belfry/internal/dispatch"
	"github.com/belfryhq/belfry/store"
	"github.com/belfryhq/belfry/target"
)

// WorkerSettings are those of a Worker. Zero values work where the field does not say otherwise.
type WorkerSettings struct {
	// Queues are the queues to deliver from; none: DefaultQueue with its defaults.
	Queues []QueueWorker
	// Mux handles the messages that name no target.
	Mux *Mux
	// Targets deliver the messages that name them. A message whose target is not here is given back for a while and the
	// target is logged once.
	Targets map[string]Target
	// Middleware wraps every delivery, the first one outermost.
	Middleware []Middleware

	// Node names this worker among those that share the store. A worker that starts again under the same name ends the
	// leases that its last run left behind at once. No two workers may run under one name. Empty: such leases run out.
	Node string
	// Lease is how long a message is held without a sign of life; it is extended while a delivery runs. Zero: 30
	// seconds; at least one second.
	Lease time.Duration
	// Grace is how long deliveries may go on when Run is asked to stop. Zero: 30 seconds; negative: none.
	Grace time.Duration
	// Safety is the longest time for which the worker trusts wake-ups alone. Zero: one second, or five where the store
	// carries wake-ups. It bounds the delay after a lost wake-up, not precision.
	Safety time.Duration
	// LaneConcurrency bounds the deliveries under way to one destination (for HTTP: one host and port); where more than half of
	// a queue's slots are taken, to a quarter of it. Zero: 32.
	LaneConcurrency int
	// Logger receives what operators should know; nil: the client's.
	Logger *slog.Logger
}

// QueueWorker is a queue, or all queues whose names begin alike, that a worker delivers from.
type QueueWorker struct {
	// Name is a queue's name, or a prefix ending in "*".
	Name string
	// Concurrency bounds the deliveries of each such queue under way in this worker. Zero: 100.
	Concurrency int
}

const (
	defaultLease       = 30 * time.Second
	defaultGrace       = 30 * time.Second
	defaultConcurrency = 100
	defaultLane        = 32
	claimAhead         = 100 * time.Millisecond
	abandonAfter       = 5 * time.Second // how long canceled deliveries have to return
	shortestLease      = time.Second
	shortSafety        = time.Second
	longestSafety      = 5 * time.Second
)

// Worker delivers due messages. Make it with NewWorker and Run it once.
type Worker struct {
	client   *Client
	settings WorkerSettings
	started  atomic.Bool
	dispatch atomic.Pointer[dispatch.Dispatcher]
	unknown  sync.Map // names of targets that were logged as missing

	listening atomic.Bool  // wake-ups of other processes are heard
	revision  atomic.Int64 // of the docs, as last seen in a claim
	seen      atomic.Int64 // when that was, in Unix milliseconds
	changed   chan struct{}
}

// NewWorker makes a worker of the client's store. The error says which setting is wrong.
func NewWorker(c *Client, settings WorkerSettings) (*Worker, error) {
	if len(settings.Queues) == 0 {
		settings.Queues = []QueueWorker{{Name: DefaultQueue}}
	}
	for i, q := range settings.Queues {
		if q.Name == "" {
			return nil, invalid("queue", "", "name a queue, or a prefix ending in *")
		}
		if q.Concurrency < 0 {
			return nil, invalid("concurrency of queue "+q.Name, fmt.Sprint(q.Concurrency), "must be zero (the default) or more")
		}
		if q.Concurrency == 0 {
			settings.Queues[i].Concurrency = defaultConcurrency
		}
	}
	if settings.Lease != 0 && settings.Lease < shortestLease {
		return nil, invalid("lease", settings.Lease.String(), "must be at least "+shortestLease.String())
	}
	setDefault(&settings.Lease, defaultLease)
	setDefault(&settings.Grace, defaultGrace)
	setDefault(&settings.LaneConcurrency, defaultLane)
	if settings.Mux == nil {
		settings.Mux = NewMux()
	}
	if settings.Logger == nil {
		settings.Logger = c.settings.Logger
	}
	settings.Mux.logger = settings.Logger
	return &Worker{client: c, settings: settings, changed: make(chan struct{}, 1)}, nil
}

func setDefault[T comparable](value *T, fallback T) {
	var zero T
	if *value == zero {
		*value = fallback
	}
}

// Run delivers until ctx ends, then stops gracefully: nothing more is claimed, what was not started is given back without
// counting an attempt, what runs has the grace period to finish, then its context ends with the cause ErrShutdown. It returns
// nil after a graceful stop, or why it could not start or did not end.
func (w *Worker) Run(ctx context.Context) error {
	if !w.started.CompareAndSwap(false, true) {
		return errors.New("the worker has been run already: make a new one")
	}
	p, err := w.register(ctx)
	if err != nil && ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("register worker %q: %w", w.settings.Node, err)
	}
	defer p.leave(ctx)
	d := dispatch.New(w.config(p.node.Name, p.node.Epoch))
	w.dispatch.Store(d)
	detach := w.client.attach(w)
	defer detach()
	if err := w.configure(ctx); err != nil && ctx.Err() == nil {
		return fmt.Errorf("read the settings of queues: %w", err)
	}
	var services sync.WaitGroup
	defer services.Wait()
	services.Go(func() { w.watchDocs(ctx) })
	services.Go(func() { w.listen(ctx) })
	services.Go(func() { w.purge(ctx) })
	services.Go(func() { p.keep(ctx) })
	return d.Run(ctx)
}

// Stats returns what the worker is doing; zero before it runs.
func (w *Worker) Stats() dispatch.Stats {
	if d := w.dispatch.Load(); d != nil {
		return d.Stats()
	}
	return dispatch.Stats{}
}

// hear tells the machine of hints; before it runs there is nobody to tell.
func (w *Worker) hear(hints []store.QueueHint) {
	if d := w.dispatch.Load(); d != nil {
		d.Hear(hints)
	}
}

// config connects the machine with the client, the targets and the settings.
func (w *Worker) config(owner string, epoch int64) dispatch.Config {
	s := w.settings
	return dispatch.Config{
		Line: w.client.store, Queues: w.client.store.Queues, Clock: w.client.clock, Logger: s.Logger,
		Target: w.chain(), Lane: w.lane,
		Serves: w.serves, ScanPrefix: commonPrefix(s.Queues),
		Hint:     w.client.hint,
		Revision: w.sawRevision,
		Owner:    owner, Epoch: epoch,
		Lease: s.Lease, Ahead: min(claimAhead, s.Lease/10), Safety: w.safety,
		Grace: max(s.Grace, 0), Abandon: abandonAfter, StoreTimeout: w.client.settings.StoreTimeout,
		LaneLimit: s.LaneConcurrency, Claimers: parallel(w.client.store), SettleWrites: parallel(w.client.store),
		ErrShutdown: ErrShutdown, ErrCanceled: ErrCanceled,
	}
}

// safety is the present interval of the safety scan.
func (w *Worker) safety() time.Duration {
	switch {
	case w.settings.Safety > 0:
		return min(w.settings.Safety, longestSafety)
	case w.listening.Load():
		return longestSafety
	default:
		return shortSafety
	}
}

// serves tells whether a queue is one of the worker's: an exact name wins over a prefix, a longer prefix over a shorter.
func (w *Worker) serves(queue string) (concurrency int, ok bool) {
	best := -1
	for _, q := range w.settings.Queues {
		prefix, isPrefix := strings.CutSuffix(q.Name, "*")
		if !isPrefix && q.Name == queue {
			return q.Concurrency, true
		}
		if isPrefix && strings.HasPrefix(queue, prefix) && len(prefix) > best {
			best, concurrency = len(prefix), q.Concurrency
		}
	}
	return concurrency, best >= 0
}

// commonPrefix returns the longest prefix of all names and prefixes.
func commonPrefix(queues []QueueWorker) string {
	common := strings.TrimSuffix(queues[0].Name, "*")
	for _, q := range queues[1:] {
		name := strings.TrimSuffix(q.Name, "*")
		n := 0
		for n < len(common) && n < len(name) && common[n] == name[n] {
			n++
		}
		common = common[:n]
	}
	return common
}

// chain is what every delivery goes through: the middleware, then the message's target.
func (w *Worker) chain() Target {
	var chain Target = target.Func(w.route)
	for i := len(w.settings.Middleware) - 1; i >= 0; i-- {
		chain = w.settings.Middleware[i](chain)
	}
	return chain
}

// route hands a delivery to the target it names.
func (w *Worker) route(ctx context.Context, d Delivery) error {
	if d.Target == "" {
		return w.settings.Mux.Deliver(ctx, d)
	}
	if t, ok := w.settings.Targets[d.Target]; ok {
		return t.Deliver(ctx, d)
	}
	if _, logged := w.unknown.LoadOrStore(d.Target, true); !logged {
		w.settings.Logger.Warn("no such target here: its messages are given back until some worker has it",
			"target", d.Target, "queue", d.Queue, "retry_in", unknownKindDelay)
	}
	return target.Snooze(unknownKindDelay)
}

// lane names the destination of a delivery, for the limit of concurrency to each.
func (w *Worker) lane(d Delivery) string {
	laner, ok := w.settings.Targets[d.Target].(target.Laner)
	if !ok {
		return ""
	}
	if lane := laner.Lane(d); lane != "" {
		return d.Target + " " + lane
	}
	return ""
}
