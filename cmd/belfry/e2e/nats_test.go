package e2e

import (
	"net/http"
	"testing"
	"time"

	natsd "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// natsServer starts a NATS server with JetStream.
func natsServer(t *testing.T) *natsd.Server {
	t.Helper()
	s, err := natsd.NewServer(&natsd.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("the NATS server is not ready")
	}
	return s
}

func TestATimerReachesNATS(t *testing.T) {
	n := natsServer(t)
	conn, err := nats.Connect(n.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	sub, err := conn.SubscribeSync("events.timer")
	if err != nil {
		t.Fatal(err)
	}
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"}})
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, t.TempDir(), "NATS_URL="+n.ClientURL())
	at := time.Now().Add(500 * time.Millisecond).Truncate(time.Millisecond)
	s.must(http.StatusCreated, "POST", "/timers", `{"execute_at":"`+at.UTC().Format(time.RFC3339Nano)+`",
		"callback":{"type":"nats","topic":"events.timer","key":"user123","headers":{"X-A":"1"},"payload":{"a": 1}}}`)
	m, err := sub.NextMsg(10 * time.Second)
	if err != nil {
		t.Fatalf("%v\n%s", err, s.log)
	}
	if late := time.Since(at); late < 0 || late > time.Second {
		t.Errorf("the message came %v after its instant", late)
	}
	if string(m.Data) != `{"a": 1}` || m.Header.Get("Belfry-Key") != "user123" || m.Header.Get("X-A") != "1" {
		t.Errorf("the message is %s with %v", m.Data, m.Header)
	}
	id := s.must(http.StatusCreated, "POST", "/timers", `{"delay":"0s","callback":{"type":"nats","topic":"orders.new"}}`).Data["id"].(string)
	deadline := time.Now().Add(10 * time.Second)
	for {
		a := s.must(http.StatusOK, "GET", "/timers/"+id, "")
		if a.Data["status"] == "completed" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the timer is not completed: %s", a.text)
		}
		time.Sleep(10 * time.Millisecond) // polls what another process does
	}
	info, err := stream.Info(t.Context())
	if err != nil || info.State.Msgs != 1 { // acknowledged by the stream before it was completed
		t.Errorf("%d messages are in the stream, %v", info.State.Msgs, err)
	}
}
