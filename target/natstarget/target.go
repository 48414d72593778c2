package natstarget

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/belfryhq/belfry/target"
)

var (
	_ target.Target  = (*Target)(nil)
	_ target.Checker = (*Target)(nil)
)

// Target delivers messages by publishing them to NATS. It may be used concurrently.
type Target struct {
	settings Settings
	link     *link
	streams  *streams
	patience time.Duration // how long a stream's acknowledgement is waited for before it is asked for again

	mu     sync.Mutex
	closed bool
	active sync.WaitGroup // deliveries
}

// ackPatience is Target.patience.
const ackPatience = 2 * time.Second

// closeGrace is how long Close waits for deliveries.
const closeGrace = 5 * time.Second

// New returns a Target that begins to connect, and returns at once. The error tells what is wrong with the settings.
func New(s Settings) (*Target, error) {
	s, err := s.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Target{settings: s, link: newLink(s), streams: newStreams(s.Logger), patience: ackPatience}, nil
}

// Close waits a few seconds for deliveries under way, interrupts those that remain, and ends the connection. What was
// delivered has been confirmed by the server, so nothing is lost. Deliveries that begin after it fail.
func (t *Target) Close() error {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	idle := make(chan struct{})
	go func() { t.active.Wait(); close(idle) }()
	select {
	case <-idle:
	case <-time.After(closeGrace):
	}
	t.link.close()
	<-idle
	return nil
}

// Check returns nil if the delivery can be made as far as that can be told without making it, and otherwise an error
// that names the field, what is wrong and what to do. It tells no header value and no payload.
func (t *Target) Check(d target.Delivery) error {
	if err := t.checkSubject(d.Address); err != nil {
		return err
	}
	if err := checkParams(d.Params); err != nil {
		return err
	}
	if err := checkValue("content type", d.ContentType); err != nil {
		return err
	}
	if d.Timeout < 0 {
		return fmt.Errorf("timeout: %v is negative; give a positive one, or none", d.Timeout)
	}
	return CheckHeaders(d.Headers)
}

// Deliver publishes the message. See the package's documentation for when it is delivered.
func (t *Target) Deliver(ctx context.Context, d target.Delivery) error {
	if ctx.Err() != nil {
		return failure(ctx, 0, nil)
	}
	if !t.begin() {
		return errClosed
	}
	defer t.active.Done()
	msg, err := t.message(&d)
	if err != nil {
		return target.Permanent(err)
	}
	limit := t.limit(ctx, &d)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err := t.deliver(ctx, msg); err != nil {
		return failure(ctx, limit, err)
	}
	return nil
}

// begin counts a delivery, unless the target is closed.
func (t *Target) begin() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	t.active.Add(1)
	return true
}

// limit returns how long the delivery may take. A deadline of the context that comes first is told in round figures,
// as it was set a moment ago.
func (t *Target) limit(ctx context.Context, d *target.Delivery) time.Duration {
	limit := t.settings.Timeout
	if d.Timeout > 0 {
		limit = d.Timeout
	}
	deadline, ok := ctx.Deadline()
	if !ok {
		return limit
	}
	left, step := time.Until(deadline), time.Millisecond
	if left > time.Second {
		step = time.Second / 10
	}
	return min(limit, max(left.Round(step), step))
}

// deliver publishes the message in the way that its subject asks for.
func (t *Target) deliver(ctx context.Context, msg *nats.Msg) error {
	s, err := t.link.session(ctx)
	if err != nil {
		return err
	}
	bound, release := s.bind(ctx)
	defer release()
	listening, err := t.streams.listening(bound, s, msg.Subject, false)
	if err != nil {
		return err
	}
	if listening {
		return t.store(bound, s, msg)
	}
	return s.publish(bound, msg)
}

// store publishes the message to a stream and returns when that has acknowledged it, or when it turns out that no stream
// listens any more and the server has the message all the same.
func (t *Target) store(ctx context.Context, s *session, msg *nats.Msg) error {
	w := s.denials.watch(msg.Subject)
	defer s.denials.unwatch(w)
	before, err := call(ctx, s, func() (uint64, error) { return s.epoch(), nil })
	if err != nil {
		return err
	}
	acked := make(chan error, 1)
	s.calls.Go(func() {
		_, err := s.js.PublishMsg(ctx, msg)
		acked <- err
	})
	again := time.NewTicker(t.patience)
	defer again.Stop()
	for {
		select {
		case err := <-acked:
			if errors.Is(err, jetstream.ErrNoStreamResponse) {
				return t.unheard(ctx, s, msg)
			}
			return err
		case <-w.denied:
			return errDenied
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-again.C:
			if listening, err := t.streams.listening(ctx, s, msg.Subject, true); err == nil && !listening {
				return s.confirm(ctx, before, w)
			}
		}
	}
}

// unheard is a message that nobody received who answers: there is no stream, unless it is without a leader for now.
func (t *Target) unheard(ctx context.Context, s *session, msg *nats.Msg) error {
	listening, err := t.streams.listening(ctx, s, msg.Subject, true)
	if err != nil {
		return err
	}
	if listening {
		return errNoStream
	}
	return s.publish(ctx, msg)
}
