package telemetry_test

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/belfryhq/belfry"
	"github.com/belfryhq/belfry/store/memstore"
	"github.com/belfryhq/belfry/telemetry"
)

func Example() {
	registry := prometheus.NewRegistry()
	metrics := telemetry.NewMetrics(registry, telemetry.MetricsSettings{})
	traces := telemetry.NewTraces(sdktrace.NewTracerProvider(), nil)

	s := metrics.Store(memstore.New())
	defer s.Close()
	client := belfry.New(s, belfry.Settings{Annotate: traces.Annotate, Logger: quiet})
	defer client.Close()
	mux, handled := belfry.NewMux(), make(chan string)
	mux.HandleFunc("greeting", func(_ context.Context, d belfry.Delivery) error {
		handled <- string(d.Payload)
		return nil
	})
	worker, err := belfry.NewWorker(client, belfry.WorkerSettings{
		Mux: mux, Middleware: []belfry.Middleware{metrics.Middleware(), traces.Middleware()},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	metrics.Watch(worker)

	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- worker.Run(ctx) }()
	if _, err := client.Schedule(ctx, "greeting", []byte("hello")); err != nil {
		fmt.Println(err)
	}
	fmt.Println(<-handled)
	stop()
	fmt.Println(<-ended)

	families, _ := registry.Gather()
	for _, family := range families {
		if family.GetName() == "belfry_messages_claimed_total" {
			fmt.Println("claimed:", family.GetMetric()[0].GetCounter().GetValue())
		}
	}
	// Output:
	// hello
	// <nil>
	// claimed: 1
}
