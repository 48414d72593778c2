package natstarget_test

import (
	"bytes"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/belfryhq/belfry/target"
	"github.com/belfryhq/belfry/target/natstarget"
)

// BenchmarkDelivery compares deliveries of 1 KB to a server of this process with a bare client that publishes and flushes
// each message, or waits for each acknowledgement: one at a time and many at once.
func BenchmarkDelivery(b *testing.B) {
	s := startServer(b, nil)
	conn := connect(b, s)
	createStream(b, conn, jetstream.StreamConfig{Name: "EVENTS", Subjects: []string{"events.>"}, Storage: jetstream.MemoryStorage, MaxMsgs: 1000})
	js, err := jetstream.New(conn)
	if err != nil {
		b.Fatal(err)
	}
	tgt := newTarget(b, natstarget.Settings{URL: s.ClientURL()})
	payload := bytes.Repeat([]byte("p"), 1024)
	header := nats.Header{"X-One": {"1"}}
	belfry := func(subject string) func() error {
		return func() error {
			d := target.Delivery{ID: nats.NewInbox(), Address: subject, Payload: payload, Headers: map[string]string{"X-One": "1"}}
			return tgt.Deliver(b.Context(), d)
		}
	}
	for _, bench := range []struct {
		name string
		do   func() error
	}{
		{"core/bare", func() error {
			if err := conn.PublishMsg(&nats.Msg{Subject: "core.timer", Data: payload, Header: header}); err != nil {
				return err
			}
			return conn.Flush()
		}},
		{"core/belfry", belfry("core.timer")},
		{"stream/bare", func() error {
			_, err := js.PublishMsg(b.Context(), &nats.Msg{Subject: "events.timer", Data: payload, Header: header})
			return err
		}},
		{"stream/belfry", belfry("events.timer")},
	} {
		b.Run(bench.name+"/1", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := bench.do(); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(bench.name+"/64", func(b *testing.B) {
			b.SetParallelism(16)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := bench.do(); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}
