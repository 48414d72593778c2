package telemetry_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/belfryhq/belfry"
	"github.com/belfryhq/belfry/store"
	"github.com/belfryhq/belfry/store/memstore"
	"github.com/belfryhq/belfry/target"
	"github.com/belfryhq/belfry/telemetry"
)

// BenchmarkStore measures what the wrapper adds to the calls that one message takes part in, put, claimed and settled in
// batches of a size; the store itself does nothing.
func BenchmarkStore(b *testing.B) {
	metrics := telemetry.NewMetrics(prometheus.NewRegistry(), telemetry.MetricsSettings{})
	for _, size := range []int{1, 10, 100} {
		messages, settlements := make([]store.Message, size), make([]store.Settlement, size)
		for i := range settlements {
			settlements[i].Outcome = store.OutcomeDone
		}
		for name, s := range map[string]store.Store{"bare": void{memstore.New()}, "measured": metrics.Store(void{memstore.New()})} {
			b.Run(fmt.Sprintf("batch=%d/%s", size, name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					_, _ = s.Put(b.Context(), epoch, messages, 0)
					_, _ = s.Claim(b.Context(), store.Claim{})
					_, _ = s.Settle(b.Context(), epoch, settlements)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*size), "ns/message")
			})
		}
	}
}

// BenchmarkMiddleware measures what the middlewares add to a delivery.
func BenchmarkMiddleware(b *testing.B) {
	metrics := telemetry.NewMetrics(prometheus.NewRegistry(), telemetry.MetricsSettings{})
	delivery := belfry.Delivery{
		Queue: "q", ID: "a", Kind: "k", Target: "http", DueAt: time.Now(), Headers: map[string]string{"X-A": "1"},
		Params: map[string]string{"trace.traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
	}
	for _, c := range []struct {
		name       string
		middleware belfry.Middleware
	}{
		{"bare", func(next belfry.Target) belfry.Target { return next }},
		{"metrics", metrics.Middleware()},
		{"traces/none", telemetry.NewTraces(nil, nil).Middleware()},
		{"traces/unsampled", sampling(sdktrace.NeverSample()).Middleware()},
		{"traces/sampled", sampling(sdktrace.AlwaysSample()).Middleware()},
	} {
		t := c.middleware(target.Func(func(context.Context, belfry.Delivery) error { return nil }))
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					_ = t.Deliver(context.Background(), delivery)
				}
			})
		})
	}
}

// BenchmarkAnnotate measures what tracing adds to an accept.
func BenchmarkAnnotate(b *testing.B) {
	for name, traces := range map[string]*telemetry.Traces{
		"none": telemetry.NewTraces(nil, nil), "unsampled": sampling(sdktrace.NeverSample()), "sampled": sampling(sdktrace.AlwaysSample()),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				m := belfry.Message{Queue: "q", ID: "a"}
				traces.Annotate(context.Background(), &m)
			}
		})
	}
}

// sampling makes traces whose spans are made and dropped.
func sampling(sampler sdktrace.Sampler) *telemetry.Traces {
	var provider trace.TracerProvider = sdktrace.NewTracerProvider(sdktrace.WithSampler(sampler))
	return telemetry.NewTraces(provider, nil)
}
