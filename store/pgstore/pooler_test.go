package pgstore_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/belfryhq/belfry/internal/testserver"
	"github.com/belfryhq/belfry/store"
	"github.com/belfryhq/belfry/store/pgstore"
	"github.com/belfryhq/belfry/store/storetest"
)

// pooler stands between clients and a server as PgBouncer does in transaction mode, only worse: every transaction gets the
// session that has waited longest, and all that a session keeps (prepared statements, LISTEN, settings, locks) is discarded
// after each. Startup parameters that PgBouncer does not know are refused.
type pooler struct {
	t        testing.TB
	listener net.Listener
	sessions chan *session // that no transaction has
	wait     sync.WaitGroup

	mu      sync.Mutex
	clients []net.Conn
	closed  bool
}

// session is a connection to the server.
type session struct {
	conn net.Conn
	buf  []byte
}

// startPooler starts a pooler with so many sessions of the server and returns its URL.
func startPooler(t testing.TB, address string, sessions int) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	p := &pooler{t: t, listener: l, sessions: make(chan *session, sessions)}
	for range sessions {
		c, err := pgconn.Connect(t.Context(), address)
		must(t, err)
		raw, err := c.Hijack()
		must(t, err)
		p.sessions <- &session{conn: raw.Conn}
	}
	t.Cleanup(p.close)
	p.wait.Go(p.accept)
	u, err := url.Parse(address)
	must(t, err)
	u.Host = l.Addr().String()
	return u.String()
}

func (p *pooler) accept() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		p.clients = append(p.clients, c)
		closed := p.closed
		p.mu.Unlock()
		if closed {
			_ = c.Close()
			return
		}
		p.wait.Go(func() {
			defer c.Close()
			if err := p.serve(c); err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) && !strings.Contains(err.Error(), "reset by peer") {
				p.t.Errorf("pooler: %v", err)
			}
		})
	}
}

func (p *pooler) close() {
	_ = p.listener.Close()
	p.mu.Lock()
	p.closed = true
	for _, c := range p.clients {
		_ = c.Close()
	}
	p.mu.Unlock()
	p.wait.Wait()
	for range cap(p.sessions) {
		_ = (<-p.sessions).conn.Close()
	}
}

// frame returns a message of the protocol.
func frame(kind byte, body ...byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(body)+4)), body...)
}

// readFrame reads a message.
func readFrame(r io.Reader, buf []byte) ([]byte, error) {
	buf = append(buf[:0], 0, 0, 0, 0, 0)
	if _, err := io.ReadFull(r, buf); err != nil {
		return nil, err
	}
	n := int(binary.BigEndian.Uint32(buf[1:])) - 4
	buf = slices.Grow(buf, n)[:5+n]
	_, err := io.ReadFull(r, buf[5:])
	return buf, err
}

// greet answers a client's startup message.
func (p *pooler) greet(c net.Conn) error {
	head := make([]byte, 8)
	if _, err := io.ReadFull(c, head); err != nil {
		return err
	}
	if binary.BigEndian.Uint32(head[4:]) != 196608 {
		return io.EOF // a request to cancel, or for TLS
	}
	body := make([]byte, binary.BigEndian.Uint32(head)-8)
	if _, err := io.ReadFull(c, body); err != nil {
		return err
	}
	words := strings.Split(strings.TrimRight(string(body), "\x00"), "\x00")
	for i := 0; i < len(words); i += 2 {
		if !slices.Contains([]string{"user", "database", "application_name", "client_encoding"}, words[i]) {
			_, err := c.Write(frame('E', []byte("SFATAL\x00VFATAL\x00C08P01\x00Munsupported startup parameter: "+words[i]+"\x00\x00")...))
			return errors.Join(err, io.EOF)
		}
	}
	hello := frame('R', 0, 0, 0, 0)
	for _, status := range []string{"server_version\x0015.0\x00", "client_encoding\x00UTF8\x00", "standard_conforming_strings\x00on\x00"} {
		hello = append(hello, frame('S', []byte(status)...)...)
	}
	hello = append(hello, frame('K', make([]byte, 8)...)...)
	_, err := c.Write(append(hello, frame('Z', 'I')...))
	return err
}

// serve hands a client's transactions to sessions.
func (p *pooler) serve(c net.Conn) error {
	if err := p.greet(c); err != nil {
		return err
	}
	var buf []byte
	for {
		var err error
		if buf, err = readFrame(c, buf); err != nil || buf[0] == 'X' {
			return err
		}
		s := <-p.sessions // of which the longest unused is the first
		err = s.transaction(c, buf)
		if undone := s.reset(); undone != nil {
			p.t.Errorf("pooler: a session is lost: %v", undone)
		}
		p.sessions <- s
		if err != nil {
			return err
		}
	}
}

// transaction passes a client's messages on, of which it has the first, until the server is in no transaction any more.
func (s *session) transaction(c net.Conn, buf []byte) error {
	for {
		if _, err := s.conn.Write(buf); err != nil {
			return err
		}
		if buf[0] == 'Q' || buf[0] == 'S' {
			status, err := s.answer(c)
			if err != nil || status == 'I' {
				return err
			}
		}
		var err error
		if buf, err = readFrame(c, buf); err != nil || buf[0] == 'X' {
			return err
		}
	}
}

// answer passes the server's messages on, as far as ReadyForQuery, whose status it returns.
func (s *session) answer(c io.Writer) (status byte, err error) {
	for {
		if s.buf, err = readFrame(s.conn, s.buf); err != nil {
			return 0, err
		}
		if _, err := c.Write(s.buf); err != nil {
			c = io.Discard // the client has gone: read on to the end of the answer
		}
		if s.buf[0] == 'Z' {
			return s.buf[5], nil
		}
	}
}

// reset ends what a client that has gone left open, and makes the session forget everything.
func (s *session) reset() error {
	var answers bytes.Buffer
	query := func(text string) []byte { return frame('Q', append([]byte(text), 0)...) }
	for _, message := range [][]byte{frame('S'), query("ROLLBACK"), query("DISCARD ALL")} {
		answers.Reset()
		if _, err := s.conn.Write(message); err != nil {
			return err
		}
		if _, err := s.answer(&answers); err != nil {
			return fmt.Errorf("%w after %q", err, answers.Bytes())
		}
	}
	if bytes.Contains(answers.Bytes(), []byte("SERROR\x00")) {
		return fmt.Errorf("%q", answers.Bytes())
	}
	return nil
}

// throughPooler opens stores behind poolers.
func throughPooler(t testing.TB) store.Store {
	t.Helper()
	return deaf{open(t, with(t, startPooler(t, testserver.Postgres(t), 4), "pooled", "true"), pgstore.Settings{})}
}

// deaf is a store without the power to hear wake-ups, which a pooled one has not.
type deaf struct{ store.Store }

func TestAPoolerByTransactionsIsEnough(t *testing.T) {
	t.Parallel()
	storetest.Run(t, throughPooler, storetest.Options{Scale: storetest.Small})
}

func TestModelThroughAPooler(t *testing.T) {
	t.Parallel()
	storetest.RunModel(t, throughPooler, storetest.Options{Scale: storetest.Small})
}

func TestAPoolerNeedsTheSetting(t *testing.T) {
	s, err := pgstore.Open(t.Context(), startPooler(t, testserver.Postgres(t), 2), pgstore.Settings{})
	if err == nil {
		_ = s.Close()
		t.Fatal("a store that needs sessions was opened through a pooler")
	}
	if !strings.Contains(err.Error(), "pooled=true") {
		t.Errorf("the error does not say what to do: %v", err)
	}
}

func TestBehindAPoolerNobodyPretendsToListen(t *testing.T) {
	address := testserver.Postgres(t)
	s := open(t, startPooler(t, address, 2), pgstore.Settings{Pooled: true})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- s.Listen(ctx, func() { t.Error("a pooled store says that it listens") }, func([]store.QueueHint) {})
	}()
	// It tells those who can.
	heard := listen(t, open(t, address, pgstore.Settings{}))
	must(t, s.Wake(t.Context(), []store.QueueHint{{Queue: "q", At: now}}))
	if h := <-heard; h.Queue != "q" {
		t.Errorf("heard %v", h)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("Listen ended with %v", err)
	}
}
