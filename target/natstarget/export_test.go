package natstarget

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/belfryhq/belfry/target"
)

// Hasten makes the target ask for streams anew after ttl and wait for acknowledgements for patience before it asks again.
func (t *Target) Hasten(ttl, patience time.Duration) { t.streams.ttl, t.patience = ttl, patience }

// SetGrace sets how long Close waits for deliveries.
func (t *Target) SetGrace(d time.Duration) { t.grace = d }

// MessageID is messageID.
func MessageID(d target.Delivery) string { return messageID(&d) }

// CheckSubjectAlone is checkSubject.
func CheckSubjectAlone(subject string) error { return checkSubject(subject) }

// Client returns the client of the present session.
func (t *Target) Client(ctx context.Context) (*nats.Conn, error) {
	s, err := t.link.session(ctx, time.Now().Add(5*time.Second))
	if err != nil {
		return nil, err
	}
	return s.conn, nil
}

// ConfirmAfter publishes a message, does something, and then waits until the server has confirmed the message.
func (t *Target) ConfirmAfter(ctx context.Context, subject string, do func(*nats.Conn)) error {
	s, err := t.link.session(ctx, time.Now().Add(5*time.Second))
	if err != nil {
		return err
	}
	w := s.denials.watch(subject)
	defer s.denials.unwatch(w)
	before := s.epoch()
	if err := s.conn.Publish(subject, nil); err != nil {
		return err
	}
	do(s.conn)
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return s.confirmed(ctx, w, func() error { return s.flush(ctx, before) })
}
