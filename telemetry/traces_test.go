package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/belfryhq/belfry"
	"github.com/belfryhq/belfry/store"
	"github.com/belfryhq/belfry/store/memstore"
	"github.com/belfryhq/belfry/target"
	"github.com/belfryhq/belfry/target/httptarget"
	"github.com/belfryhq/belfry/telemetry"
)

// newTraces makes traces whose spans are kept in memory.
func newTraces() (*telemetry.Traces, *sdktrace.TracerProvider, *tracetest.InMemoryExporter) {
	exporter := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
	return telemetry.NewTraces(provider, nil), provider, exporter
}

// attributes returns a span's attributes by name.
func attributes(s tracetest.SpanStub) map[attribute.Key]any {
	all := make(map[attribute.Key]any, len(s.Attributes))
	for _, a := range s.Attributes {
		all[a.Key] = a.Value.AsInterface()
	}
	return all
}

// only returns the spans with a name.
func only(spans tracetest.SpanStubs, name string) (found tracetest.SpanStubs) {
	for _, s := range spans {
		if s.Name == name {
			found = append(found, s)
		}
	}
	return found
}

func TestOneTraceFromTheCallerToTheReceiver(t *testing.T) {
	t.Parallel()
	received := make(chan http.Header, 2)
	statuses := make(chan int, 2)
	statuses <- http.StatusServiceUnavailable
	statuses <- http.StatusOK
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(<-statuses)
		received <- r.Header
	}))
	t.Cleanup(receiver.Close)
	sender, err := httptarget.New(httptarget.Settings{AllowPrivate: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sender.Close() })
	traces, provider, exporter := newTraces()
	c, _, stop := running(t, memstore.New(), belfry.Settings{Annotate: traces.Annotate}, belfry.WorkerSettings{
		Targets: map[string]belfry.Target{"http": sender}, Middleware: []belfry.Middleware{traces.Middleware()},
	})

	ctx, caller := provider.Tracer("test").Start(t.Context(), "caller")
	m, err := c.Schedule(ctx, "greeting", "hello", belfry.To("http", receiver.URL), belfry.Header("X-Tenant", "a"),
		belfry.Retry(belfry.RetryPolicy{Base: time.Millisecond}))
	caller.End()
	if err != nil {
		t.Fatal(err)
	}
	headers := []http.Header{<-received, <-received}
	stop()

	spans := exporter.GetSpans()
	created, processed := only(spans, "create default"), only(spans, "process default")
	if len(created) != 1 || len(processed) != 2 {
		t.Fatalf("%d producer spans and %d consumer spans, want 1 and 2", len(created), len(processed))
	}
	producer := created[0]
	if producer.SpanKind != trace.SpanKindProducer || producer.Parent.SpanID() != caller.SpanContext().SpanID() {
		t.Errorf("the producer span is a %v under %v, want a producer under the caller's", producer.SpanKind, producer.Parent.SpanID())
	}
	for i, s := range processed {
		if s.SpanContext.TraceID() != caller.SpanContext().TraceID() || s.Parent.SpanID() != producer.SpanContext.SpanID() {
			t.Errorf("attempt %d is not under the producer span", i+1)
		}
		if s.SpanKind != trace.SpanKindConsumer || len(s.Links) != 1 || s.Links[0].SpanContext.SpanID() != producer.SpanContext.SpanID() {
			t.Errorf("attempt %d is a %v with links %v, want a consumer linked to the producer", i+1, s.SpanKind, s.Links)
		}
		want := fmt.Sprintf("00-%s-%s-01", s.SpanContext.TraceID(), s.SpanContext.SpanID())
		if got := headers[i].Get("Traceparent"); got != want {
			t.Errorf("attempt %d reached the receiver with traceparent %q, want %q", i+1, got, want)
		}
		if headers[i].Get("X-Tenant") != "a" {
			t.Errorf("attempt %d lost the user's header", i+1)
		}
		has := attributes(s)
		for key, want := range map[attribute.Key]any{
			"messaging.system": "belfry", "messaging.destination.name": "default", "messaging.message.id": m.ID,
			"messaging.operation.name": "process", "messaging.operation.type": "process", "messaging.message.body.size": int64(7),
			"belfry.kind": "greeting", "belfry.target": "http", "belfry.attempt": int64(i + 1),
			"belfry.outcome":     []any{"retry", "delivered"}[i],
			"belfry.status_code": []any{int64(503), int64(200)}[i],
			"error.type":         []any{"503", nil}[i],
		} {
			if has[key] != want {
				t.Errorf("attempt %d has %s = %v, want %v", i+1, key, has[key], want)
			}
		}
		if lag, ok := has["belfry.fire_lag"].(float64); !ok || lag < 0 || lag > 60 {
			t.Errorf("attempt %d has fire lag %v", i+1, has["belfry.fire_lag"])
		}
	}
	if processed[0].Status.Code != codes.Error || processed[1].Status.Code != codes.Unset {
		t.Errorf("statuses are %v and %v, want Error and Unset", processed[0].Status, processed[1].Status)
	}
}

func TestTheUsersHeadersAndParamsStayAsGiven(t *testing.T) {
	t.Parallel()
	traces, _, _ := newTraces()
	headers, params := map[string]string{"X-A": "1"}, map[string]string{"method": "PUT"}
	m := belfry.Message{Queue: "q", ID: "a", Headers: headers, Params: params}
	traces.Annotate(t.Context(), &m)
	if len(m.Headers) != 1 || len(headers) != 1 {
		t.Errorf("the message's headers became %v", m.Headers)
	}
	if len(params) != 1 {
		t.Errorf("the caller's own map became %v", params)
	}
	if m.Params["method"] != "PUT" || m.Params["trace.traceparent"] == "" {
		t.Errorf("the message's params became %v", m.Params)
	}

	before := maps.Clone(m.Params)
	var seen belfry.Delivery
	next := target.Func(func(_ context.Context, d belfry.Delivery) error { seen = d; return nil })
	d := belfry.Delivery{Queue: "q", ID: "a", Target: "http", Headers: headers, Params: m.Params}
	if err := traces.Middleware()(next).Deliver(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	if len(headers) != 1 || !maps.Equal(m.Params, before) {
		t.Errorf("a delivery changed the message's headers to %v and its params to %v", headers, m.Params)
	}
	if !maps.Equal(seen.Params, params) {
		t.Errorf("the target saw the params %v, want %v", seen.Params, params)
	}
	if seen.Headers["X-A"] != "1" || seen.Headers["traceparent"] == "" {
		t.Errorf("the target saw the headers %v", seen.Headers)
	}
}

func TestTheUsersOwnTraceHeaderWins(t *testing.T) {
	t.Parallel()
	traces, _, _ := newTraces()
	own := map[string]string{"Traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
	next := target.Func(func(_ context.Context, d belfry.Delivery) error {
		if !maps.Equal(d.Headers, own) {
			t.Errorf("the target saw the headers %v, want %v", d.Headers, own)
		}
		return nil
	})
	if err := traces.Middleware()(next).Deliver(t.Context(), belfry.Delivery{Target: "http", Headers: own}); err != nil {
		t.Fatal(err)
	}
}

func TestHandlersGetTheTraceInTheirContext(t *testing.T) {
	t.Parallel()
	traces, _, exporter := newTraces()
	m := belfry.Message{Queue: "q", ID: "a"}
	traces.Annotate(t.Context(), &m)
	next := target.Func(func(ctx context.Context, d belfry.Delivery) error {
		if d.Headers != nil {
			t.Errorf("a handler saw the headers %v", d.Headers)
		}
		child := belfry.Message{Queue: "q", ID: "b"} // scheduled by the handler
		traces.Annotate(ctx, &child)
		return nil
	})
	if err := traces.Middleware()(next).Deliver(t.Context(), belfry.Delivery{Queue: "q", ID: "a", Params: m.Params}); err != nil {
		t.Fatal(err)
	}
	created, processed := only(exporter.GetSpans(), "create q"), only(exporter.GetSpans(), "process q")
	if len(created) != 2 || len(processed) != 1 || created[1].Parent.SpanID() != processed[0].SpanContext.SpanID() {
		t.Error("what a handler schedules is not under its delivery's span")
	}
}

func TestAMessageKeepsTheTraceItCarries(t *testing.T) {
	t.Parallel()
	traces, _, exporter := newTraces()
	first := belfry.Message{Queue: "q", ID: "a"}
	traces.Annotate(t.Context(), &first)
	follow := belfry.Message{Queue: "q", ID: "b", Params: first.Params}
	traces.Annotate(t.Context(), &follow)
	imported := belfry.Message{Queue: "q", ID: "c", State: store.Done}
	traces.Annotate(t.Context(), &imported)
	if !maps.Equal(follow.Params, first.Params) || imported.Params != nil || len(exporter.GetSpans()) != 1 {
		t.Errorf("params are %v and %v after %d spans", follow.Params, imported.Params, len(exporter.GetSpans()))
	}
}

func TestOtherPropagatorsTravelToo(t *testing.T) {
	t.Parallel()
	exporter := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
	traces := telemetry.NewTraces(provider, propagation.NewCompositeTextMapPropagator(only128{}, propagation.TraceContext{}))
	m := belfry.Message{Queue: "q", ID: "a", Params: map[string]string{"method": "PUT"}}
	traces.Annotate(t.Context(), &m)
	next := target.Func(func(ctx context.Context, d belfry.Delivery) error {
		if d.Headers["x-trace"] == "" || len(d.Params) != 1 {
			t.Errorf("the target saw the headers %v and the params %v", d.Headers, d.Params)
		}
		if keys, _ := ctx.Value(keysOf{}).([]string); !slices.Equal(slices.Sorted(slices.Values(keys)), []string{"traceparent", "x-trace"}) {
			t.Errorf("the propagator found %v", keys)
		}
		return nil
	})
	d := belfry.Delivery{Queue: "q", Target: "http", Params: m.Params}
	if err := traces.Middleware()(next).Deliver(t.Context(), d); err != nil {
		t.Fatal(err)
	}
}

// only128 is a propagator that writes the trace's id alone.
type only128 struct{}

func (only128) Inject(ctx context.Context, carrier propagation.TextMapCarrier) {
	carrier.Set("x-trace", trace.SpanContextFromContext(ctx).TraceID().String())
}

// Extract keeps the names it finds in the context.
func (only128) Extract(ctx context.Context, carrier propagation.TextMapCarrier) context.Context {
	return context.WithValue(ctx, keysOf{}, carrier.Keys())
}

func (only128) Fields() []string { return []string{"x-trace"} }

type keysOf struct{}

func TestWithoutAProviderNothingIsWritten(t *testing.T) {
	t.Parallel()
	traces := telemetry.NewTraces(noop.NewTracerProvider(), nil)
	m := belfry.Message{Queue: "q", ID: "a"}
	traces.Annotate(t.Context(), &m)
	next := target.Func(func(_ context.Context, d belfry.Delivery) error {
		if m.Params != nil || d.Headers != nil {
			t.Errorf("params %v and headers %v were written without a trace", m.Params, d.Headers)
		}
		return nil
	})
	if err := traces.Middleware()(next).Deliver(t.Context(), belfry.Delivery{Target: "http"}); err != nil {
		t.Fatal(err)
	}
}

func TestSpansSayHowADeliveryEnded(t *testing.T) {
	t.Parallel()
	plain := errors.New("refused")
	for _, c := range []struct {
		rule           string
		ctx            context.Context
		err            error
		status         int
		outcome, class string
	}{
		{"delivered", t.Context(), nil, 204, "delivered", ""},
		{"a snooze is no error", t.Context(), belfry.Snooze(time.Second), 0, "snoozed", ""},
		{"a plain error has no class", t.Context(), plain, 0, "retry", "_OTHER"},
		{"a status is the class", t.Context(), belfry.Permanent(plain), 410, "permanent", "410"},
		{"a deadline", because(context.DeadlineExceeded), plain, 0, "retry", "timeout"},
		{"a timeout of the target's", t.Context(), fmt.Errorf("dial: %w", timeoutError{}), 0, "retry", "timeout"},
		{"a lost lease", because(belfry.ErrLeaseLost), plain, 0, "interrupted", "lease_lost"},
		{"a shutdown", because(belfry.ErrShutdown), plain, 0, "interrupted", "shutdown"},
		{"a cancellation", because(belfry.ErrCanceled), plain, 0, "interrupted", "canceled"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			traces, _, exporter := newTraces()
			next := target.Func(func(_ context.Context, d belfry.Delivery) error {
				d.Observe(c.status, nil)
				return c.err
			})
			d := belfry.Delivery{Queue: "q", ID: "a", Observed: &target.Observation{}}
			if err := traces.Middleware()(next).Deliver(c.ctx, d); !errors.Is(err, c.err) {
				t.Fatalf("the error was changed to %v", err)
			}
			span := exporter.GetSpans()[0]
			has := attributes(span)
			class, _ := has["error.type"].(string)
			if has["belfry.outcome"] != c.outcome || class != c.class {
				t.Errorf("outcome %v, class %q, want %s, %q", has["belfry.outcome"], class, c.outcome, c.class)
			}
			if failed := span.Status.Code == codes.Error; failed != (c.class != "") {
				t.Errorf("the span's status is %v", span.Status)
			}
			if len(span.Links) != 0 || span.Parent.IsValid() {
				t.Error("a message without a trace has a parent")
			}
		})
	}
}

func TestAPanicEndsTheSpan(t *testing.T) {
	t.Parallel()
	traces, _, exporter := newTraces()
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic did not reach the engine")
			}
		}()
		next := target.Func(func(context.Context, belfry.Delivery) error { panic("handler") })
		_ = traces.Middleware()(next).Deliver(t.Context(), belfry.Delivery{Queue: "q"})
	}()
	spans := exporter.GetSpans()
	if len(spans) != 1 || attributes(spans[0])["error.type"] != "panic" || spans[0].Status.Code != codes.Error {
		t.Errorf("spans: %v", spans)
	}
}
