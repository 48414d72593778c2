package natstarget_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/belfryhq/belfry/target/natstarget"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// startServer starts a NATS server that ends with the test. Change, when not nil, changes its options.
func startServer(t testing.TB, change func(*server.Options)) *server.Server {
	t.Helper()
	o := &server.Options{Host: "127.0.0.1", Port: -1, NoSigs: true, NoLog: true, JetStream: true, StoreDir: t.TempDir()}
	if change != nil {
		change(o)
	}
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { stop(s) })
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("the NATS server does not start")
	}
	return s
}

func stop(s *server.Server) {
	s.Shutdown()
	s.WaitForShutdown()
}

// connect returns a client of the server.
func connect(t testing.TB, s *server.Server) *nats.Conn {
	t.Helper()
	conn, err := nats.Connect(s.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}

// createStream creates a stream, or changes it.
func createStream(t testing.TB, conn *nats.Conn, c jetstream.StreamConfig) jetstream.Stream {
	t.Helper()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.CreateOrUpdateStream(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

// count returns how many messages a stream holds.
func count(t testing.TB, stream jetstream.Stream) uint64 {
	t.Helper()
	info, err := stream.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return info.State.Msgs
}

// newTarget returns a target that is closed with the test, and logs to it.
func newTarget(t testing.TB, s natstarget.Settings) *natstarget.Target {
	t.Helper()
	if s.Logger == nil {
		s.Logger = slog.New(slog.DiscardHandler)
	}
	tgt, err := natstarget.New(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tgt.Close() })
	return tgt
}

// address returns a server's host and port.
func address(s *server.Server) string { return strings.TrimPrefix(s.ClientURL(), "nats://") }
