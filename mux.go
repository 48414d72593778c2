package belfry

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/belfryhq/belfry/target"
)

// Handler works on one delivery. A nil error means done; a plain one is a failed attempt that is tried again by the
// message's policy; see Permanent, RetryAfter and Snooze. Its context ends when the delivery's deadline passes, the lease
// is lost, the message is interrupted or the worker shuts down; context.Cause tells which.
type Handler func(ctx context.Context, d Delivery) error

// Middleware wraps the delivery of messages.
type Middleware func(next Target) Target

// Mux delivers messages to in-process handlers by their kind. It is a Target. Handlers are registered before the worker
// runs; deliveries are concurrent.
type Mux struct {
	mu       sync.RWMutex
	handlers map[string]Handler
	notFound Handler
	unknown  map[string]bool // kinds that were logged as having no handler
	logger   *slog.Logger
}

// NewMux makes an empty mux.
func NewMux() *Mux { return &Mux{handlers: map[string]Handler{}, unknown: map[string]bool{}} }

// unknownKindDelay is how long a message of a kind without a handler is given back for: another worker may know it.
const unknownKindDelay = 10 * time.Second

// HandleFunc registers the handler of a kind. It panics when the kind has one already: that is a mistake in the program.
func (m *Mux) HandleFunc(kind string, h Handler) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, taken := m.handlers[kind]; taken {
		panic(fmt.Sprintf("belfry: kind %q has a handler already", kind))
	}
	m.handlers[kind] = h
}

// NotFound registers the handler of kinds that have none. Without it such messages are given back for a while, uncounted,
// and the kind is logged once.
func (m *Mux) NotFound(h Handler) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.notFound = h
}

// Deliver calls the handler of the delivery's kind.
func (m *Mux) Deliver(ctx context.Context, d Delivery) error {
	m.mu.RLock()
	h, ok := m.handlers[d.Kind]
	if !ok {
		h = m.notFound
	}
	m.mu.RUnlock()
	if h == nil {
		m.logUnknown(ctx, d)
		return target.Snooze(unknownKindDelay)
	}
	return h(ctx, d)
}

// logUnknown says once per kind that nobody here handles it.
func (m *Mux) logUnknown(ctx context.Context, d Delivery) {
	m.mu.Lock()
	known := m.unknown[d.Kind]
	m.unknown[d.Kind] = true
	logger := m.logger
	m.mu.Unlock()
	if logger == nil {
		logger = slog.Default()
	}
	if !known {
		logger.WarnContext(ctx, "no handler for this kind: its messages are given back until some worker has one",
			"kind", d.Kind, "queue", d.Queue, "retry_in", unknownKindDelay)
	}
}

// Handle registers a handler that gets the payload decoded from JSON. A payload that cannot be decoded makes the message
// dead: another attempt would not read it either.
func Handle[A any](m *Mux, kind string, h func(ctx context.Context, d Delivery, payload A) error) {
	m.HandleFunc(kind, func(ctx context.Context, d Delivery) error {
		var payload A
		if err := json.Unmarshal(d.Payload, &payload); err != nil {
			return Permanent(fmt.Errorf("payload of kind %q is not a JSON %T: %w", kind, payload, err))
		}
		return h(ctx, d, payload)
	})
}

// Kind is a kind of message with its payload's type: a definition as a value, so that those who schedule and those who
// handle share one name.
type Kind[A any] struct {
	name    string
	options []Option
}

// Define makes a kind. The options apply to every message of it, before those given when scheduling.
func Define[A any](name string, options ...Option) Kind[A] {
	return Kind[A]{name: name, options: options}
}

// Name returns the kind's name.
func (k Kind[A]) Name() string { return k.name }

// Schedule accepts one message of the kind; see Client.Schedule.
func (k Kind[A]) Schedule(ctx context.Context, c *Client, payload A, options ...Option) (Message, error) {
	accepted, err := c.ScheduleAll(ctx, k.Compose(payload, options...))
	if err != nil {
		return Message{}, err
	}
	return accepted[0].Message, accepted[0].Err
}

// Compose makes a draft of the kind, to be accepted with others by Client.ScheduleAll.
func (k Kind[A]) Compose(payload A, options ...Option) Draft {
	all := make([]Option, 0, len(k.options)+len(options))
	all = append(append(all, k.options...), options...)
	return Compose(k.name, payload, all...)
}

// Handle registers the kind's handler.
func (k Kind[A]) Handle(m *Mux, h func(ctx context.Context, d Delivery, payload A) error) {
	Handle(m, k.name, h)
}
