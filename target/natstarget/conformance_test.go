package natstarget_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/belfryhq/belfry/target"
	"github.com/belfryhq/belfry/target/natstarget"
	"github.com/belfryhq/belfry/target/targettest"
)

func TestTargetKeepsTheLaws(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"core", "JetStream"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			targettest.Run(t, targettest.Harness{
				New: func(t testing.TB) (target.Target, targettest.Destination) {
					d := newDestination(t, kind == "JetStream")
					return newTarget(t, natstarget.Settings{URL: d.proxy.url(), ConnectWait: 500 * time.Millisecond}), d
				},
				Secrets: func(d *target.Delivery, text string) { d.Params = map[string]string{"key": text} },
			})
		})
	}
}

// destination is a subscriber of a server behind a proxy, with or without a stream.
type destination struct {
	targettest.Recorder
	proxy  *proxy
	stream jetstream.Stream
	set    func(jetstream.StreamConfig) jetstream.Stream
}

const subject = "events.timer"

func newDestination(t testing.TB, withStream bool) *destination {
	s := startServer(t, nil)
	conn := connect(t, s)
	d := &destination{proxy: newProxy(t, address(s))}
	_, err := conn.Subscribe(subject, func(m *nats.Msg) {
		headers := make(map[string]string, len(m.Header))
		for name, values := range m.Header {
			headers[name] = values[0]
		}
		d.Record(targettest.Arrival{Payload: m.Data, ContentType: m.Header.Get("Content-Type"), Headers: headers})
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Flush(); err != nil {
		t.Fatal(err)
	}
	if withStream {
		d.set = func(c jetstream.StreamConfig) jetstream.Stream {
			c.Name, c.Subjects, c.Storage, c.Discard = "EVENTS", []string{"events.>"}, jetstream.MemoryStorage, jetstream.DiscardNew
			return createStream(t, conn, c)
		}
		d.stream = d.set(jetstream.StreamConfig{})
	}
	return d
}

func (d *destination) Delivery() target.Delivery { return target.Delivery{Address: subject} }

func (d *destination) Answer(a targettest.Answer) bool {
	modes := map[targettest.Kind]mode{
		targettest.Accept: forward, targettest.Hang: stall, targettest.Cut: cut, targettest.Unreachable: refuse,
	}
	if m, ok := modes[a.Kind]; ok {
		if d.set != nil {
			d.set(jetstream.StreamConfig{})
		}
		d.proxy.set(m)
		return true
	}
	if d.set == nil || a.Kind != targettest.Fail && a.Kind != targettest.Refuse {
		return false
	}
	if a.Kind == targettest.Refuse {
		d.set(jetstream.StreamConfig{MaxMsgSize: 1})
		return true
	}
	info, err := d.stream.Info(context.Background())
	if err != nil {
		return false
	}
	d.set(jetstream.StreamConfig{MaxMsgs: int64(max(info.State.Msgs, 1))})
	return info.State.Msgs > 0
}
