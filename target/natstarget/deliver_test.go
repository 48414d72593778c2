package natstarget_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/belfryhq/belfry/target"
	"github.com/belfryhq/belfry/target/natstarget"
)

// failed fails the test unless the delivery is a failed attempt with the text.
func failed(t *testing.T, err error, want string) {
	t.Helper()
	if verdict, _, asked := target.Judge(err); verdict != target.Retry || asked || err.Error() != want {
		t.Errorf("the error is %v (verdict %d), want %q", err, verdict, want)
	}
}

// subscribed returns what arrives on a subject.
func subscribed(t *testing.T, conn *nats.Conn, subject string) *nats.Subscription {
	t.Helper()
	sub, err := conn.SubscribeSync(subject)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Flush(); err != nil {
		t.Fatal(err)
	}
	return sub
}

// next returns the next message that arrives.
func next(t *testing.T, sub *nats.Subscription) *nats.Msg {
	t.Helper()
	m, err := sub.NextMsg(5 * time.Second)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// events is a stream on the subject of the tests.
var events = jetstream.StreamConfig{Name: "EVENTS", Subjects: []string{"events.>"}, Storage: jetstream.MemoryStorage}

func TestTheMessageIsAsTheDeliverySays(t *testing.T) {
	t.Parallel()
	s := startServer(t, nil)
	sub := subscribed(t, connect(t, s), subject)
	tgt := newTarget(t, natstarget.Settings{URL: s.ClientURL()})
	bare := target.Delivery{Queue: "timers", ID: "m1", Address: subject}
	if err := tgt.Deliver(t.Context(), bare); err != nil {
		t.Fatal(err)
	}
	m := next(t, sub)
	if len(m.Data) != 0 || m.Reply != "" || len(m.Header) != 1 || m.Header.Get("Nats-Msg-Id") != natstarget.MessageID(bare) {
		t.Errorf("a bare message arrived with %d bytes, reply %q, headers %v", len(m.Data), m.Reply, m.Header)
	}
	full := bare
	full.ContentType, full.Payload = "application/json", []byte(`{"a":1}`)
	full.Params = map[string]string{"key": "user123"}
	full.Headers = map[string]string{"X-Ü": "1"}
	if verdict, _, _ := target.Judge(tgt.Deliver(t.Context(), full)); verdict != target.Bury {
		t.Errorf("a header that cannot be sent: the verdict is %d", verdict)
	}
	full.Headers = map[string]string{"X-One": "größe", "Nats-Msg-Id": "mine"}
	if err := tgt.Deliver(t.Context(), full); err != nil {
		t.Fatal(err)
	}
	m = next(t, sub)
	want := map[string]string{"Content-Type": "application/json", "Belfry-Key": "user123", "X-One": "größe", "Nats-Msg-Id": "mine"}
	for name, value := range want {
		if m.Header.Get(name) != value {
			t.Errorf("header %s arrived as %q, want %q", name, m.Header.Get(name), value)
		}
	}
	if string(m.Data) != `{"a":1}` || len(m.Header) != len(want) {
		t.Errorf("it arrived as %q with %v", m.Data, m.Header)
	}
}

func TestADeliveryToAStreamIsStoredWhenItReturns(t *testing.T) {
	t.Parallel()
	s := startServer(t, nil)
	stream := createStream(t, connect(t, s), events)
	tgt := newTarget(t, natstarget.Settings{URL: s.ClientURL()})
	for i := range uint64(3) {
		d := target.Delivery{Queue: "timers", ID: string(rune('a' + i)), Address: subject, Payload: []byte("x")}
		if err := tgt.Deliver(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		if n := count(t, stream); n != i+1 {
			t.Errorf("the stream holds %d, want %d", n, i+1)
		}
	}
}

func TestAStreamStoresARepeatedAttemptOnceAndAllElseAnew(t *testing.T) {
	t.Parallel()
	s := startServer(t, nil)
	stream := createStream(t, connect(t, s), events)
	tgt := newTarget(t, natstarget.Settings{URL: s.ClientURL()})
	now := time.Now()
	first := target.Delivery{Queue: "timers", ID: "order", Address: subject, Payload: []byte("x"), Attempt: 1, Fence: 7, CreatedAt: now, FireAt: now}
	change := func(f func(*target.Delivery)) target.Delivery { d := first; f(&d); return d }
	for _, tt := range []struct {
		name   string
		d      target.Delivery
		stored uint64
	}{
		{"the first attempt", first, 1},
		{"its repetition", change(func(d *target.Delivery) {
			d.Attempt, d.Fence, d.DueAt, d.Headers = 2, 9, now.Add(time.Minute), map[string]string{"traceparent": "00-1-2-01"}
		}), 1},
		{"the id in another queue", change(func(d *target.Delivery) { d.Queue = "other" }), 2},
		{"a message put again under the id", change(func(d *target.Delivery) { d.CreatedAt = now.Add(time.Millisecond) }), 3},
		{"a rescheduled message", change(func(d *target.Delivery) { d.FireAt = now.Add(time.Hour) }), 4},
		{"another payload", change(func(d *target.Delivery) { d.Payload = []byte("y") }), 5},
		{"another subject of the stream", change(func(d *target.Delivery) { d.Address = "events.other" }), 6},
		{"a late repetition", change(func(d *target.Delivery) { d.Attempt = 3 }), 6},
	} {
		if err := tgt.Deliver(t.Context(), tt.d); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if n := count(t, stream); n != tt.stored {
			t.Errorf("%s: the stream holds %d, want %d", tt.name, n, tt.stored)
		}
	}
}

func TestAMessageWhoseAcknowledgementWasLostIsStoredOnce(t *testing.T) {
	t.Parallel()
	s := startServer(t, nil)
	stream := createStream(t, connect(t, s), events)
	p := newProxy(t, address(s))
	tgt := newTarget(t, natstarget.Settings{URL: p.url()})
	d := target.Delivery{Queue: "timers", ID: "warm", Address: subject}
	if err := tgt.Deliver(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	p.set(deaf)
	d = target.Delivery{Queue: "timers", ID: "m", Address: subject, Timeout: 200 * time.Millisecond}
	failed(t, tgt.Deliver(t.Context(), d), "timeout after 200ms")
	p.set(forward)
	if err := tgt.Deliver(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	if n := count(t, stream); n != 2 {
		t.Errorf("the stream holds %d messages, want 2", n)
	}
}

func TestAPayloadLargerThanTheServerTakesIsRefusedForGood(t *testing.T) {
	t.Parallel()
	s := startServer(t, func(o *server.Options) { o.MaxPayload = 1000 })
	tgt := newTarget(t, natstarget.Settings{URL: s.ClientURL()})
	d := target.Delivery{Address: subject, Payload: make([]byte, 1001)}
	err := tgt.Deliver(t.Context(), d)
	if verdict, _, _ := target.Judge(err); verdict != target.Bury || err.Error() != "the message is larger than the NATS server takes" {
		t.Errorf("the error is %v (verdict %d)", err, verdict)
	}
	if err := tgt.Deliver(t.Context(), target.Delivery{Address: subject}); err != nil {
		t.Errorf("the connection was harmed: %v", err)
	}
}

func TestATimeoutIsToldWithItsLength(t *testing.T) {
	t.Parallel()
	s := startServer(t, nil)
	p := newProxy(t, address(s))
	tgt := newTarget(t, natstarget.Settings{URL: p.url(), Timeout: 150 * time.Millisecond})
	if err := tgt.Deliver(t.Context(), target.Delivery{Address: subject}); err != nil {
		t.Fatal(err)
	}
	p.set(stall)
	failed(t, tgt.Deliver(t.Context(), target.Delivery{Address: subject}), "timeout after 150ms")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := tgt.Deliver(ctx, target.Delivery{Address: subject})
	failed(t, err, "timeout after 50ms")
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v is no deadline", err)
	}
}

func TestSubjectsThatControlNATSAreShutUnlessTheSettingsOpenThem(t *testing.T) {
	t.Parallel()
	s := startServer(t, nil)
	stream := createStream(t, connect(t, s), events)
	d := target.Delivery{Address: "$JS.API.STREAM.DELETE.EVENTS"}
	shut := newTarget(t, natstarget.Settings{URL: s.ClientURL()})
	if err := shut.Check(d); err == nil {
		t.Error("Check accepts it")
	}
	if verdict, _, _ := target.Judge(shut.Deliver(t.Context(), d)); verdict != target.Bury {
		t.Errorf("the verdict is %d", verdict)
	}
	count(t, stream)
	open := newTarget(t, natstarget.Settings{URL: s.ClientURL(), AllowControl: true})
	if err := open.Check(d); err != nil {
		t.Errorf("Check refuses it: %v", err)
	}
	if err := open.Deliver(t.Context(), target.Delivery{Address: "$KV.bucket.key"}); err != nil {
		t.Error(err)
	}
}
