package web

import (
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Trace returns the handler with each request in a span, under the trace that the caller's traceparent names. With a
// provider that records nothing, the caller's trace is still passed on to what the handler accepts.
func Trace(handler http.Handler, provider trace.TracerProvider) http.Handler {
	tracer := provider.Tracer("github.com/belfryhq/belfry/cmd/belfry")
	propagator := propagation.TraceContext{}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := propagator.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
		// The pattern of the route is known only afterwards; the path has ids in it.
		ctx, span := tracer.Start(ctx, r.Method, trace.WithSpanKind(trace.SpanKindServer),
			trace.WithAttributes(attribute.String("http.request.method", r.Method)))
		defer span.End()
		seen := &response{ResponseWriter: w}
		handler.ServeHTTP(seen, r.WithContext(ctx))
		span.SetAttributes(attribute.Int("http.response.status_code", seen.status))
		if seen.status >= http.StatusInternalServerError {
			span.SetStatus(codes.Error, "")
		}
	})
}
