package telemetry

import (
	"context"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/belfryhq/belfry"
	"github.com/belfryhq/belfry/target"
)

// scope names this instrumentation to a TracerProvider.
const scope = "github.com/belfryhq/belfry/telemetry"

var system = semconv.MessagingSystemKey.String("belfry")

// The attributes that the messaging conventions have no name for.
const (
	kindAttribute       = attribute.Key("belfry.kind")
	targetAttribute     = attribute.Key("belfry.target")
	attemptAttribute    = attribute.Key("belfry.attempt")
	fireLagAttribute    = attribute.Key("belfry.fire_lag") // seconds
	outcomeAttribute    = attribute.Key("belfry.outcome")
	statusCodeAttribute = attribute.Key("belfry.status_code")
)

// Traces follows messages from the accept to the receiver. It is safe for concurrent use.
type Traces struct {
	tracer     trace.Tracer
	propagator propagation.TextMapPropagator
	fields     []string
}

// NewTraces makes traces. A nil provider means the global one, a nil propagator W3C Trace Context.
func NewTraces(provider trace.TracerProvider, propagator propagation.TextMapPropagator) *Traces {
	if provider == nil {
		provider = otel.GetTracerProvider()
	}
	if propagator == nil {
		propagator = propagation.TraceContext{}
	}
	return &Traces{
		tracer:     provider.Tracer(scope, trace.WithSchemaURL(semconv.SchemaURL)),
		propagator: propagator,
		fields:     propagator.Fields(),
	}
}

// Annotate gives a message the trace it belongs to, as a producer span under the caller's: belfry.Settings.Annotate. The
// span says that the message was made, not that it was stored, which is why the conventions' "create" is its name and not
// "send". A message that carries a trace already, copied from another one, keeps it; a finished one gets none.
func (t *Traces) Annotate(ctx context.Context, m *belfry.Message) {
	if m.State.Finished() || params(m.Params).traced() {
		return
	}
	ctx, span := t.tracer.Start(ctx, "create "+m.Queue, trace.WithSpanKind(trace.SpanKindProducer), trace.WithAttributes(
		system,
		semconv.MessagingOperationName("create"), semconv.MessagingOperationTypeCreate,
		semconv.MessagingDestinationName(m.Queue), semconv.MessagingMessageID(m.ID),
		semconv.MessagingMessageBodySize(len(m.Payload)),
		kindAttribute.String(m.Kind), targetAttribute.String(m.Target),
	))
	defer span.End()
	carrier := roomy(m.Params, len(t.fields))
	t.propagator.Inject(ctx, params(carrier))
	if len(carrier) > len(m.Params) {
		m.Params = carrier
	}
}

// Middleware makes each delivery a consumer span under the message's producer span, linked to it, and hands the trace on:
// to in-process handlers in the context, to other targets in the headers too, unless the user set headers of these names.
func (t *Traces) Middleware() belfry.Middleware {
	return func(next belfry.Target) belfry.Target {
		return target.Func(func(ctx context.Context, d belfry.Delivery) error {
			return t.process(ctx, d, next)
		})
	}
}

// process is one delivery in its span.
func (t *Traces) process(ctx context.Context, d belfry.Delivery, next belfry.Target) error {
	ctx, span := t.start(ctx, &d)
	panicked := true
	defer func() {
		if panicked { // the engine makes a failed attempt of it
			span.SetAttributes(outcomeAttribute.String(outcomeLabels[retry]))
			fail(span, "panic")
		}
		span.End()
	}()
	if d.Target != "" {
		d.Params = params(d.Params).settings()
		d.Headers = t.headers(ctx, d.Headers)
	}
	err := next.Deliver(ctx, d)
	panicked = false
	if span.IsRecording() {
		finish(ctx, span, &d, err)
	}
	return err
}

// start begins the span of a delivery.
func (t *Traces) start(ctx context.Context, d *belfry.Delivery) (context.Context, trace.Span) {
	ctx = t.propagator.Extract(ctx, params(d.Params))
	options := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(
		system,
		semconv.MessagingOperationName("process"), semconv.MessagingOperationTypeProcess,
		semconv.MessagingDestinationName(d.Queue), semconv.MessagingMessageID(d.ID),
		semconv.MessagingMessageBodySize(len(d.Payload)),
		kindAttribute.String(d.Kind), targetAttribute.String(d.Target),
		attemptAttribute.Int(d.Attempt),
	)}
	if creation := trace.SpanContextFromContext(ctx); creation.IsValid() {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: creation}))
	}
	if !d.DueAt.IsZero() {
		options = append(options, trace.WithAttributes(fireLagAttribute.Float64(max(time.Since(d.DueAt), 0).Seconds())))
	}
	return t.tracer.Start(ctx, "process "+d.Queue, options...)
}

// headers returns the headers with the context's trace; as they are when there is none, or when the user set one, in
// whatever case.
func (t *Traces) headers(ctx context.Context, given map[string]string) map[string]string {
	for name := range given {
		for _, field := range t.fields {
			if strings.EqualFold(name, field) {
				return given
			}
		}
	}
	headers := roomy(given, len(t.fields))
	t.propagator.Inject(ctx, propagation.MapCarrier(headers))
	if len(headers) == len(given) {
		return given
	}
	return headers
}

// finish notes how a delivery ended, without the error's text.
func finish(ctx context.Context, span trace.Span, d *belfry.Delivery, err error) {
	ended := outcomeOf(ctx, err)
	span.SetAttributes(outcomeAttribute.String(outcomeLabels[ended]))
	if d.Observed != nil && d.Observed.Status != 0 {
		span.SetAttributes(statusCodeAttribute.Int(d.Observed.Status))
	}
	if ended != delivered && ended != snoozed {
		fail(span, errorClass(ctx, err, d.Observed))
	}
}

// fail marks a span as failed.
func fail(span trace.Span, class string) {
	span.SetAttributes(semconv.ErrorTypeKey.String(class))
	span.SetStatus(codes.Error, class)
}
