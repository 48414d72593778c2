package belfry_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfryhq/belfry"
	"github.com/belfryhq/belfry/store"
	"github.com/belfryhq/belfry/store/memstore"
)

// engine is a client, a mux and a worker on one store, inside a synctest bubble.
type engine struct {
	*belfry.Client
	t      *testing.T
	mux    *belfry.Mux
	worker *belfry.Worker
	stop   context.CancelFunc
	ended  chan error
}

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// bubble runs a test inside virtual time.
func bubble(t *testing.T, test func(t *testing.T)) {
	t.Parallel()
	synctest.Test(t, test)
}

// pass lets virtual time pass and waits until everything that it set off has come to rest.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// newEngine makes an engine on a store, not yet running.
func newEngine(t *testing.T, s store.Store, settings belfry.WorkerSettings) *engine {
	t.Helper()
	c := belfry.New(s, belfry.Settings{Logger: quiet})
	if settings.Mux == nil {
		settings.Mux = belfry.NewMux()
	}
	w, err := belfry.NewWorker(c, settings)
	if err != nil {
		t.Fatal(err)
	}
	return &engine{Client: c, t: t, mux: settings.Mux, worker: w}
}

// start runs the worker; it is stopped at the end of the test.
func (e *engine) start() *engine {
	ctx, cancel := context.WithCancel(context.Background())
	e.stop, e.ended = cancel, make(chan error, 1)
	go func() { e.ended <- e.worker.Run(ctx) }()
	e.t.Cleanup(func() {
		cancel()
		if err := <-e.ended; err != nil {
			e.t.Errorf("Run: %v", err)
		}
		e.Close()
	})
	synctest.Wait()
	return e
}

// stopped stops the worker, waits for it and returns what Run said.
func (e *engine) stopped() error {
	e.stop()
	err := <-e.ended
	e.ended <- nil // for the clean-up
	return err
}

// running makes an engine on a fresh memory store and starts it.
func running(t *testing.T, settings belfry.WorkerSettings) *engine {
	t.Helper()
	return newEngine(t, memstore.New(), settings).start()
}

func (e *engine) schedule(kind string, payload any, options ...belfry.Option) belfry.Message {
	e.t.Helper()
	m, err := e.Schedule(e.t.Context(), kind, payload, options...)
	if err != nil {
		e.t.Fatalf("Schedule(%s): %v", kind, err)
	}
	return m
}

func (e *engine) get(m belfry.Message) belfry.Message {
	e.t.Helper()
	got, err := e.Get(e.t.Context(), m.Queue, m.ID)
	if err != nil {
		e.t.Fatalf("Get: %v", err)
	}
	return got
}

// record is a handler that notes when each delivery began.
type record struct {
	mu    sync.Mutex
	times []time.Time
	ids   []string
	all   []belfry.Delivery
}

func (r *record) handle(_ context.Context, d belfry.Delivery) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.times, r.ids, r.all = append(r.times, time.Now()), append(r.ids, d.ID), append(r.all, d)
	return nil
}

func (r *record) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.ids)
}

func (r *record) failing(err error) belfry.Handler {
	return func(ctx context.Context, d belfry.Delivery) error {
		_ = r.handle(ctx, d)
		return err
	}
}

var errBoom = errors.New("boom")

// faulty is a store whose calls fail or count on demand.
type faulty struct {
	store.Store

	mu     sync.Mutex
	calls  map[string]int
	broken map[string]error
	skew   time.Duration // when not zero, the store has a clock, this much ahead
}

func newFaulty() *faulty {
	return &faulty{Store: memstore.New(), calls: map[string]int{}, broken: map[string]error{}}
}

// Unwrap lets the engine find the inner store's powers.
func (f *faulty) Unwrap() store.Store { return f.Store }

func (f *faulty) fail(op string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.broken[op] = err
}

func (f *faulty) note(op string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls[op]++
	return f.broken[op]
}

func (f *faulty) total() (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, calls := range f.calls {
		n += calls
	}
	return n
}

// ofMessages counts the calls that only messages cause.
func (f *faulty) ofMessages() int {
	return f.count("put") + f.count("claim") + f.count("settle") + f.count("extend")
}

func (f *faulty) count(op string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[op]
}

func (f *faulty) Put(ctx context.Context, now time.Time, m []store.Message, mode store.PutMode) ([]store.PutResult, error) {
	if err := f.note("put"); err != nil {
		return nil, err
	}
	return f.Store.Put(ctx, now, m, mode)
}

func (f *faulty) Claim(ctx context.Context, c store.Claim) (store.Claimed, error) {
	if err := f.note("claim"); err != nil {
		return store.Claimed{}, err
	}
	claimed, err := f.Store.Claim(ctx, c)
	if f.skew != 0 {
		claimed.StoreNow = time.Now().Add(f.skew)
	}
	return claimed, err
}

func (f *faulty) Settle(ctx context.Context, now time.Time, s []store.Settlement) ([]error, error) {
	if err := f.note("settle"); err != nil {
		return nil, err
	}
	return f.Store.Settle(ctx, now, s)
}

func (f *faulty) Extend(ctx context.Context, now time.Time, tokens []store.Token, until time.Time) ([]store.Held, error) {
	if err := f.note("extend"); err != nil {
		return nil, err
	}
	return f.Store.Extend(ctx, now, tokens, until)
}

func (f *faulty) Queues(ctx context.Context, w store.Window) ([]store.QueueHint, error) {
	if err := f.note("queues"); err != nil {
		return nil, err
	}
	return f.Store.Queues(ctx, w)
}

func (f *faulty) Docs() store.Docs { return countedDocs{f.Store.Docs(), f} }

type countedDocs struct {
	store.Docs
	f *faulty
}

func (d countedDocs) Revision(ctx context.Context) (int64, error) {
	if err := d.f.note("docs"); err != nil {
		return 0, err
	}
	return d.Docs.Revision(ctx)
}

func (d countedDocs) List(ctx context.Context, prefix, after string, limit int) ([]store.Doc, error) {
	if err := d.f.note("docs"); err != nil {
		return nil, err
	}
	return d.Docs.List(ctx, prefix, after, limit)
}

func (d countedDocs) Put(ctx context.Context, doc store.Doc) (int64, error) {
	if err := d.f.note("docs write"); err != nil {
		return 0, err
	}
	return d.Docs.Put(ctx, doc)
}

func (d countedDocs) Delete(ctx context.Context, name string, version int64) error {
	if err := d.f.note("docs write"); err != nil {
		return err
	}
	return d.Docs.Delete(ctx, name, version)
}
