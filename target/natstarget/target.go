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
	patience time.Duration // how long an acknowledgement is waited for before it is asked whether there still is a stream
	grace    time.Duration // how long Close waits for deliveries

	mu     sync.Mutex
	closed bool
	active sync.WaitGroup // deliveries
}

// What New sets.
const (
	ackPatience = 2 * time.Second
	closeGrace  = 5 * time.Second
)

// New returns a Target that begins to connect, and returns at once. The error tells what is wrong with the settings.
func New(s Settings) (*Target, error) {
	s, err := s.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Target{settings: s, link: newLink(s), streams: newStreams(s.Logger), patience: ackPatience, grace: closeGrace}, nil
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
	case <-time.After(t.grace):
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
	if err := checkValue(d.ContentType); err != nil {
		return fmt.Errorf("content type: %w", err)
	}
	if d.Timeout < 0 {
		return fmt.Errorf("timeout: %v is negative; give a positive one, or none", d.Timeout)
	}
	return CheckHeaders(d.Headers)
}

// Deliver publishes the message. See the package's documentation for when it is delivered.
func (t *Target) Deliver(ctx context.Context, d target.Delivery) error {
	if ctx.Err() != nil {
		return interrupted(ctx)
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

// deliver publishes the message, on the next connection if it turns out that the present one is none and nothing of the
// message was sent.
func (t *Target) deliver(ctx context.Context, msg *nats.Msg) error {
	until := time.Now().Add(t.settings.ConnectWait)
	for {
		s, err := t.link.session(ctx, until)
		if err != nil {
			return err
		}
		err = t.deliverBy(ctx, s, msg)
		if !errors.Is(err, nats.ErrReconnectBufExceeded) {
			return err
		}
		t.link.drop(s)
	}
}

// deliverBy publishes the message in the way that its subject asks for. ErrReconnectBufExceeded means that there is no
// connection and nothing was sent.
func (t *Target) deliverBy(ctx context.Context, s *session, msg *nats.Msg) error {
	listening, err := t.streams.listening(ctx, s, msg.Subject, false)
	if err != nil {
		return unsent(s, err)
	}
	if !listening {
		return s.publish(ctx, msg)
	}
	err = t.store(ctx, s, msg)
	if errors.Is(err, jetstream.ErrNoStreamResponse) {
		return t.unheard(ctx, s, msg)
	}
	return err
}

// unsent returns what came in the way before anything of the message was sent: that there is no connection, or err.
func unsent(s *session, err error) error {
	if s.life.Err() != nil || lost(err) {
		return nats.ErrReconnectBufExceeded
	}
	return err
}

// store publishes the message to a stream and returns when that has acknowledged it, or when it turns out that no stream
// listens any more and the server has the message all the same.
func (t *Target) store(ctx context.Context, s *session, msg *nats.Msg) error {
	ctx, release := s.bind(ctx) // the client does not tell who waits for an answer that the connection is lost
	defer release()
	w := s.denials.watch(msg.Subject)
	defer s.denials.unwatch(w)
	before, err := call(ctx, s, func() (uint64, error) { return s.epoch(), nil })
	if err != nil {
		return unsent(s, err)
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
			return err
		case <-w.denied:
			return errDenied
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-again.C:
			if listening, err := t.streams.listening(ctx, s, msg.Subject, true); err == nil && !listening {
				return s.confirmed(ctx, w, func() error { return s.flush(ctx, before) })
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
