package natstarget

import (
	"context"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// session is one stretch of being connected. It ends when the connection is lost, even if the client makes another.
type session struct {
	conn    *nats.Conn
	js      jetstream.JetStream
	denials *denials
	flushes flusher
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
	s.flushes.flush, s.flushes.spawn = s.flush, calls.Go
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

// flushTimeout bounds a flush that nobody waits for any more.
const flushTimeout = 10 * time.Second

// flush waits until the server has answered to all that was published before, and returns the epoch in which it did.
func (s *session) flush() (uint64, error) {
	ctx, cancel := context.WithTimeout(s.life, flushTimeout)
	defer cancel()
	if err := s.conn.FlushWithContext(ctx); err != nil {
		return 0, err
	}
	return s.epoch(), nil
}

// publish publishes the message and returns when the server has it.
func (s *session) publish(ctx context.Context, msg *nats.Msg) error {
	w := s.denials.watch(msg.Subject)
	defer s.denials.unwatch(w)
	before, err := call(ctx, s, func() (uint64, error) {
		before := s.epoch()
		return before, s.conn.PublishMsg(s.fit(msg))
	})
	if err != nil {
		return err
	}
	return s.confirm(ctx, before, w)
}

// confirm returns when the server has what was published since the epoch was read. The client sends what it had not sent
// before it lost its connection no more, but has a flush answered on the next one: so the epoch must not have changed.
func (s *session) confirm(ctx context.Context, before uint64, w *watch) error {
	last, err := call(ctx, s, func() (error, error) {
		after, err := s.flushes.wait()
		if err == nil && after != before {
			err = errLost
		}
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
