package belfry

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/belfryhq/belfry/internal/combine"
	"github.com/belfryhq/belfry/internal/engineclock"
	"github.com/belfryhq/belfry/internal/lifecycle"
	"github.com/belfryhq/belfry/store"
)

// DefaultQueue is where messages go that name no queue.
const DefaultQueue = "default"

// DefaultRetention is how long finished messages are kept where neither the message nor the client says otherwise.
var DefaultRetention = Retention{Done: 24 * time.Hour, Dead: 30 * 24 * time.Hour}

// DefaultRetry is the retry policy where neither the message nor the client says otherwise.
var DefaultRetry = lifecycle.Default

// Settings are those of a Client. The zero value works.
type Settings struct {
	// Retry fills the zero fields of the messages' policies; its own zero fields are those of DefaultRetry.
	Retry RetryPolicy
	// Retention is that of messages scheduled without Keep; nil: DefaultRetention.
	Retention *Retention
	// Logger receives what operators should know; nil: slog.Default().
	Logger *slog.Logger
	// Annotate, when not nil, sees every message just before it is accepted and may add to its headers and
	// metadata: how a trace travels with it. It is called concurrently.
	Annotate func(ctx context.Context, m *Message)
	// StoreTimeout bounds each call to the store; zero: 30 seconds.
	StoreTimeout time.Duration
	// AcceptParallel is how many batches of accepts are written at once; zero: what serves the store best.
	AcceptParallel int
}

// Client accepts messages and changes them while they wait. It is safe for concurrent use. Accepts of concurrent callers
// are written together; each caller is answered only when its own messages are durable.
type Client struct {
	store    store.Store
	settings Settings
	clock    *engineclock.Clock
	accepts  *combine.Group[Message, store.PutResult]
	wakes    *wakes

	mu      sync.Mutex
	workers []*Worker // running on this client: told at once of what is accepted
}

// New makes a client of a store. The store stays the caller's: Close it after the client.
func New(s store.Store, settings Settings) *Client {
	if settings.Logger == nil {
		settings.Logger = slog.Default()
	}
	if settings.StoreTimeout == 0 {
		settings.StoreTimeout = 30 * time.Second
	}
	if settings.Retention == nil {
		settings.Retention = &DefaultRetention
	}
	settings.Retry = lifecycle.Resolve(settings.Retry, DefaultRetry)
	c := &Client{store: s, settings: settings, clock: engineclock.New(0)}
	c.accepts = combine.New(c.writeAccepts, combine.Limits[Message]{
		MaxItems: acceptBatch,
		MaxBytes: acceptBytes,
		Size:     messageSize,
		InFlight: cmp.Or(settings.AcceptParallel, parallel(s)),
		Timeout:  settings.StoreTimeout,
	})
	waker, _ := store.Power[store.Waker](s)
	c.wakes = newWakes(waker, settings.Logger)
	return c
}

// parallel returns how many writes at once serve a store best.
func parallel(s store.Store) int {
	if p, ok := store.Power[store.Paralleler](s); ok {
		return max(p.Parallel(), 1)
	}
	return 1
}

const (
	acceptBatch = 500     // messages written together
	acceptBytes = 8 << 20 // bytes written together
)

func messageSize(m Message) int { return len(m.Payload) + len(m.Metadata) + 256 }

// Close waits for wake-ups that are being sent. It does not close the store.
func (c *Client) Close() { c.wakes.close() }

// Store returns the store the client works on.
func (c *Client) Store() store.Store { return c.store }

// Schedule accepts one message of a kind for the in-process handlers, or, with To, for another target. When it returns
// nil the message is durable and will be delivered at its instant. With ErrExists or ErrDuplicate it returns the message
// that stands in the way.
func (c *Client) Schedule(ctx context.Context, kind string, payload any, options ...Option) (Message, error) {
	accepted, err := c.ScheduleAll(ctx, Compose(kind, payload, options...))
	if err != nil {
		return Message{}, err
	}
	return accepted[0].Message, accepted[0].Err
}

// Accepted is what became of one draft.
type Accepted struct {
	// Message is the accepted message; with ErrExists and ErrDuplicate, the one that stands in the way.
	Message Message
	// Err is nil, ErrExists or ErrDuplicate.
	Err error
}

// ScheduleAll accepts many messages; each has its own result, in the order of the drafts. A draft that is not valid
// fails the whole call before anything is stored, with an error that names its place.
func (c *Client) ScheduleAll(ctx context.Context, drafts ...Draft) ([]Accepted, error) {
	messages, err := c.finishAll(drafts)
	if err != nil {
		return nil, err
	}
	results, err := c.Put(ctx, messages, 0)
	if err != nil {
		return nil, err
	}
	return accepted(messages, results), nil
}

// finishAll turns drafts into messages.
func (c *Client) finishAll(drafts []Draft) ([]Message, error) {
	now := c.clock.Now()
	messages := make([]Message, len(drafts))
	for i := range drafts {
		m, err := c.finish(&drafts[i], now)
		if err != nil {
			return nil, atPlace(err, i, len(drafts))
		}
		messages[i] = m
	}
	return messages, nil
}

// accepted joins messages and results.
func accepted(messages []Message, results []store.PutResult) []Accepted {
	out := make([]Accepted, len(results))
	for i, r := range results {
		out[i].Err = r.Err
		switch {
		case r.Err == nil:
			out[i].Message = messages[i]
			out[i].Message.Version = r.Version
		case r.Existing != nil:
			out[i].Message = *r.Existing
		}
	}
	return out
}

// finish turns a draft into a message with all defaults filled in.
func (c *Client) finish(d *Draft, now time.Time) (Message, error) {
	if d.err != nil {
		return Message{}, d.err
	}
	m := d.message
	if m.Queue == "" {
		m.Queue = DefaultQueue
	}
	if m.FireAt.IsZero() {
		m.FireAt = store.Ceil(now.Add(max(d.in, 0)))
	}
	if d.dedupFor > 0 {
		m.DedupUntil = store.Ceil(m.FireAt.Add(d.dedupFor))
	}
	m.Retention = *c.settings.Retention
	if d.retention != nil {
		m.Retention = *d.retention
	}
	return m, nil
}

// Put accepts prepared messages: what the APIs on top of the library use. Of each message Queue and FireAt are
// needed; an empty ID becomes a UUIDv7, a zero State Scheduled, zero fields of Retry the client's; the Retention is taken
// as it is. The elements of messages are completed in place. See store.Line.Put for modes and results.
func (c *Client) Put(ctx context.Context, messages []Message, mode store.PutMode) ([]store.PutResult, error) {
	if err := c.prepareAll(ctx, messages); err != nil || len(messages) == 0 {
		return nil, err
	}
	results, err := c.put(ctx, messages, mode)
	if err != nil {
		return nil, err
	}
	c.wake(messages, results)
	return results, nil
}

// prepareAll completes messages and checks them.
func (c *Client) prepareAll(ctx context.Context, messages []Message) error {
	now := c.clock.Now()
	for i := range messages {
		if err := c.prepare(ctx, &messages[i], now); err != nil {
			return atPlace(err, i, len(messages))
		}
	}
	return nil
}

// put writes through the group commit where messages need nothing but to be stored, else directly.
func (c *Client) put(ctx context.Context, messages []Message, mode store.PutMode) ([]store.PutResult, error) {
	if mode != 0 {
		ctx, cancel := context.WithTimeout(ctx, c.settings.StoreTimeout)
		defer cancel()
		return c.store.Put(ctx, c.clock.Now(), messages, mode)
	}
	results := make([]store.PutResult, 0, len(messages))
	for chunk := range slices.Chunk(messages, acceptBatch) {
		part, err := c.accepts.Do(ctx, chunk...)
		if err != nil {
			return nil, err
		}
		results = append(results, part...)
	}
	return results, nil
}

// writeAccepts writes one batch of the group commit.
func (c *Client) writeAccepts(ctx context.Context, messages []Message) ([]store.PutResult, error) {
	return c.store.Put(ctx, c.clock.Now(), messages, 0)
}

// wake tells workers, here and in other processes, what was accepted.
func (c *Client) wake(messages []Message, results []store.PutResult) {
	c.hint(hints(messages, results))
}

// hints tells of the messages that were accepted and wait.
func hints(messages []Message, results []store.PutResult) []store.QueueHint {
	all := make([]store.QueueHint, 0, 1)
	for i := range results {
		m := &messages[i]
		if results[i].Err != nil || m.State != Scheduled {
			continue
		}
		if n := len(all); n > 0 && all[n-1].Queue == m.Queue {
			all[n-1].At = store.Earlier(all[n-1].At, m.DueAt)
			continue
		}
		all = append(all, store.QueueHint{Queue: m.Queue, At: m.DueAt})
	}
	return all
}

// hint passes hints on to the workers of this client and, where they are near, to other processes.
func (c *Client) hint(hints []store.QueueHint) {
	if len(hints) == 0 {
		return
	}
	c.mu.Lock()
	workers := c.workers
	c.mu.Unlock()
	for _, w := range workers {
		w.hear(hints)
	}
	c.wakes.send(hints, c.clock.Now().Add(wakeHorizon))
}

// wakeHorizon is how far ahead a wake-up is worth sending: what is due later is found by every engine's safety scan.
const wakeHorizon = 2 * longestSafety

// attach registers a running worker; the returned function takes it out again.
func (c *Client) attach(w *Worker) (detach func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.workers = append(slices.Clone(c.workers), w)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.workers = slices.DeleteFunc(slices.Clone(c.workers), func(other *Worker) bool { return other == w })
	}
}

// Get returns a message with its payload and its last attempts.
func (c *Client) Get(ctx context.Context, queue, id string) (Message, error) {
	return c.store.Get(ctx, store.Key{Queue: queue, ID: id})
}

// Holder returns the message that holds a dedup key in a queue. Error: ErrNotFound when the key is free.
func (c *Client) Holder(ctx context.Context, queue, dedupKey string) (Message, error) {
	key, err := c.store.Holder(ctx, queue, dedupKey, c.clock.Now())
	if err != nil {
		return Message{}, err
	}
	return c.store.Get(ctx, key)
}

// List returns a page of the messages that match the query.
func (c *Client) List(ctx context.Context, query Query) (Page, error) {
	return c.store.List(ctx, query)
}

// Count returns how many messages match the query.
func (c *Client) Count(ctx context.Context, query Query) (int64, error) {
	return c.store.Count(ctx, query)
}
