package natstarget

import (
	"context"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// session is one stretch of being connected. It ends when the connection is lost, even if the client makes another.
type session struct {
	conn    *nats.Conn
	js      jetstream.JetStream
	denials *denials
	life    context.Context
	end     context.CancelCauseFunc
	calls   *sync.WaitGroup // of the client: deliveries do not wait for them to the end, Close does
}

func newSession(ctx context.Context, conn *nats.Conn, d *denials, calls *sync.WaitGroup) (*session, error) {
	js, err := jetstream.New(conn)
	if err != nil {
		return nil, err
	}
	s := &session{conn: conn, js: js, denials: d, calls: calls}
	s.life, s.end = context.WithCancelCause(ctx)
	return s, nil
}

// bind returns ctx so that it ends with the session too, and what releases it.
func (s *session) bind(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.life, func() { cancel(context.Cause(s.life)) })
	return ctx, func() { stop(); cancel(nil) }
}

// call calls the client and returns with ctx at the latest: the client's locks may be held, by a write that blocks or a
// dial, for longer than that. What f uses it may use after call has returned.
func call[T any](ctx context.Context, s *session, f func() (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	s.calls.Go(func() {
		value, err := f()
		done <- outcome{value, err}
	})
	select {
	case o := <-done:
		return o.value, o.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}

// epoch returns a number that grows with each connection that the client makes.
func (s *session) epoch() uint64 { return s.conn.Stats().Reconnects }

// publish publishes the message and returns when the server has it. It goes on if the session ends meanwhile: what
// becomes of the message is known at once then, and it may be that the next connection already carries it.
func (s *session) publish(ctx context.Context, msg *nats.Msg) error {
	w := s.denials.watch(msg.Subject)
	defer s.denials.unwatch(w)
	return s.confirmed(ctx, w, func() error {
		before := s.epoch()
		if err := s.conn.PublishMsg(s.fit(msg)); err != nil {
			return err
		}
		return s.flush(ctx, before)
	})
}

// flush returns when the server has what was published since the epoch was read. The client sends what it had not sent
// before it lost its connection no more, but has a flush answered on the next one: so the epoch must not have changed.
func (s *session) flush(ctx context.Context, before uint64) error {
	if err := s.conn.FlushWithContext(ctx); err != nil {
		return err
	}
	if s.epoch() != before {
		return errLost
	}
	return nil
}

// confirmed calls f, which returns when the server has something, and then waits for what it says of it.
func (s *session) confirmed(ctx context.Context, w *watch, f func() error) error {
	last, err := call(ctx, s, func() (error, error) {
		err := f()
		return s.conn.LastError(), err
	})
	if err != nil {
		return err
	}
	s.denials.caughtUp(ctx, last)
	select {
	case <-w.denied:
		return errDenied
	default:
		return nil
	}
}

// fit returns the message as the server can take it: without its id where there are no headers.
func (s *session) fit(msg *nats.Msg) *nats.Msg {
	if len(msg.Header) > 1 || s.conn.HeadersSupported() {
		return msg
	}
	return &nats.Msg{Subject: msg.Subject, Data: msg.Data}
}
