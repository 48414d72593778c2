// Package telemetry shows what a Belfry engine does: metrics for Prometheus and traces for OpenTelemetry.
//
// Nothing is hooked into the engine. All there is to see passes through the two contracts, so all is seen from there: a
// store is wrapped (Metrics.Store), deliveries go through middleware (Metrics.Middleware, Traces.Middleware), accepted
// messages through belfry.Settings.Annotate (Traces.Annotate). A program that does not import this package pays nothing
// for it.
//
// # Metrics
//
//	metrics := telemetry.NewMetrics(registry, telemetry.MetricsSettings{})
//	s = metrics.Store(s)
//	client := belfry.New(s, belfry.Settings{})
//	worker, err := belfry.NewWorker(client, belfry.WorkerSettings{Middleware: []belfry.Middleware{metrics.Middleware()}})
//	metrics.Watch(worker)
//
// docs/guide/metrics.md lists every metric and what to alert on.
//
// # Traces
//
// A message's trace goes from the caller's span over a producer span ("create" and the queue), which is where it was
// accepted, to a consumer span ("process" and the queue) for each attempt, and on to the receiver in the headers of the
// propagator, by default W3C's traceparent and tracestate. While the message waits its trace is kept in Message.Params
// under the propagator's names with "trace." before them, and not in Message.Headers, which stay what the user gave.
//
// # Secrets
//
// Neither metrics nor spans contain payloads, values of headers or params, metadata, addresses or texts of errors. Labels
// of metrics are bounded in number and never ids.
package telemetry
