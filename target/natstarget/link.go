package natstarget

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// link keeps a connection: it makes one, makes another when the client has given one up, and tells whether there is one
// right now. Whoever delivers asks the link and not the client, whose locks are held while it dials.
type link struct {
	settings Settings
	log      *slog.Logger
	denials  denials
	calls    sync.WaitGroup
	ctx      context.Context // ends with the link
	cancel   context.CancelCauseFunc
	ended    chan struct{} // closed when run has returned

	mu      sync.Mutex
	live    *session      // nil: not connected
	up      chan struct{} // closed while there is a session
	reason  string        // why there is none
	told    string        // the reason that was logged last
	clients int           // since there was a session
}

// newLink returns a link that begins to connect.
func newLink(s Settings) *link {
	ctx, cancel := context.WithCancelCause(context.Background())
	l := &link{settings: s, log: s.Logger, ctx: ctx, cancel: cancel, ended: make(chan struct{}), up: make(chan struct{}), reason: "connecting"}
	go l.run()
	return l
}

// close ends the connection and waits until it has, and all calls with it.
func (l *link) close() {
	l.cancel(errClosed)
	<-l.ended
	l.calls.Wait()
}

// run keeps a client until the link is closed. The client reconnects by itself, but gives up for good after some errors
// of the protocol; then there is another.
func (l *link) run() {
	defer close(l.ended)
	for l.ctx.Err() == nil {
		gone := make(chan struct{})
		conn, err := nats.Connect(l.settings.URL, append(l.settings.options(dialer{l.ctx, l.settings.Dialer}), l.handlers(gone)...)...)
		if err != nil {
			l.failed(err)
		} else {
			select {
			case <-gone:
			case <-l.ctx.Done():
			}
			conn.Close()
			<-gone
		}
		select {
		case <-time.After(backoff(l.attempt())):
		case <-l.ctx.Done():
		}
	}
}

// attempt returns how many clients there were since there was a connection.
func (l *link) attempt() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clients++
	return l.clients
}

// handlers returns options by which the client tells what becomes of it; gone is closed when it has given up.
func (l *link) handlers(gone chan struct{}) []nats.Option {
	return []nats.Option{
		nats.ConnectHandler(l.connected),
		nats.ReconnectHandler(l.connected),
		nats.DisconnectErrHandler(func(conn *nats.Conn, err error) { l.lost(conn, err) }),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) { l.failed(err) }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { l.complained(err) }),
		nats.ClosedHandler(func(conn *nats.Conn) {
			l.lost(conn, conn.LastError())
			close(gone)
		}),
	}
}

// connected begins a session.
func (l *link) connected(conn *nats.Conn) {
	l.denials.begin()
	s, err := newSession(l.ctx, conn, &l.denials, &l.calls)
	if err != nil {
		l.failed(err)
		return
	}
	l.mu.Lock()
	if l.live != nil {
		l.live.end(errLost)
	} else {
		close(l.up)
	}
	l.live, l.told, l.clients = s, "", 0
	l.mu.Unlock()
	l.log.Info("connected to NATS", "server", conn.ConnectedUrlRedacted())
}

// lost ends the session of the client, if it has one.
func (l *link) lost(conn *nats.Conn, err error) {
	l.mu.Lock()
	if l.live != nil && l.live.conn == conn {
		l.end()
	}
	l.mu.Unlock()
	l.failed(err)
}

// drop ends a session whose connection turned out to be lost before the client has said so.
func (l *link) drop(s *session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.live == s {
		l.end()
	}
}

// end ends the present session. The lock is held.
func (l *link) end() {
	l.live.end(errLost)
	l.live, l.up, l.reason = nil, make(chan struct{}), "connection lost"
}

// failed notes why there is no connection and logs it if that is news.
func (l *link) failed(err error) {
	if err == nil || l.ctx.Err() != nil {
		return
	}
	reason := describe(err)
	l.mu.Lock()
	news := l.live == nil && reason != l.told
	l.reason = reason
	if news {
		l.told = reason
	}
	l.mu.Unlock()
	if news {
		l.log.Warn("NATS cannot be reached; trying again in the background", "reason", reason)
	}
}

// complained notes what the server says beside answers: mostly that something is not permitted.
func (l *link) complained(err error) {
	l.denials.note(err)
	l.failed(err)
}

// session returns the present session, waiting for one until then.
func (l *link) session(ctx context.Context, until time.Time) (*session, error) {
	live, up, _ := l.state()
	if live != nil {
		return live, nil
	}
	late := time.NewTimer(time.Until(until))
	defer late.Stop()
	for {
		select {
		case <-up:
		case <-late.C:
			_, _, reason := l.state()
			return nil, plainError("not connected to NATS: " + reason)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-l.ctx.Done():
			return nil, errClosed
		}
		if live, up, _ = l.state(); live != nil {
			return live, nil
		}
	}
}

// state returns the present session, or what is closed when there is one and why there is none.
func (l *link) state() (live *session, up <-chan struct{}, reason string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.live, l.up, l.reason
}

// dialer makes connections that end with the link, whatever is waited for on them: the client's locks are held then.
type dialer struct {
	ctx  context.Context
	dial nats.CustomDialer // nil: as usual
}

// Dial connects to the address.
func (d dialer) Dial(network, address string) (net.Conn, error) {
	conn, err := d.connect(network, address)
	if err != nil {
		return nil, err
	}
	return &tied{conn, context.AfterFunc(d.ctx, func() { conn.Close() })}, nil
}

func (d dialer) connect(network, address string) (net.Conn, error) {
	if d.dial != nil {
		return d.dial.Dial(network, address)
	}
	return (&net.Dialer{Timeout: dialTimeout}).DialContext(d.ctx, network, address)
}

// SkipTLSHandshake asks the operator's dialer whether it has made a TLS connection.
func (d dialer) SkipTLSHandshake() bool {
	own, ok := d.dial.(interface{ SkipTLSHandshake() bool })
	return ok && own.SkipTLSHandshake()
}

// tied is a connection that is closed when something ends.
type tied struct {
	net.Conn
	release func() bool
}

// Close closes the connection.
func (t *tied) Close() error {
	t.release()
	return t.Conn.Close()
}

// backoff returns how long to wait before the attempt: longer and longer, up to about five seconds, never all at once.
func backoff(attempt int) time.Duration {
	const shortest, longest = 100 * time.Millisecond, 5 * time.Second
	d := shortest << min(attempt-1, 6)
	d = min(d, longest)
	return d/2 + rand.N(d/2+1)
}
