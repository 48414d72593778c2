package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/belfryhq/belfry/cmd/belfry/internal/config"
	"github.com/belfryhq/belfry/telemetry"
)

// tracing follows messages. Without an endpoint nothing is recorded, but the traces of callers are still passed on.
type tracing struct {
	*telemetry.Traces
	provider trace.TracerProvider
	exporter *sdk.TracerProvider // nil: nothing is exported
	logger   *slog.Logger
}

// newTracing sets up the export of traces where it is configured. An endpoint that cannot be reached costs traces only.
func newTracing(ctx context.Context, s *observeSettings, values config.Values, logger *slog.Logger) (*tracing, error) {
	t := &tracing{provider: noop.NewTracerProvider(), logger: logger}
	if s.OtlpEndpoint != "" {
		endpoint, err := tracesURL(s.OtlpEndpoint)
		if err != nil {
			return nil, at(values.Place("otlp-endpoint"), err)
		}
		options := []otlptracehttp.Option{otlptracehttp.WithEndpointURL(endpoint)}
		if !s.OtlpHeaders.IsZero() {
			headers, err := otlpHeaders(s.OtlpHeaders.Reveal())
			if err != nil {
				return nil, at(values.Place("otlp-headers"), err)
			}
			options = append(options, otlptracehttp.WithHeaders(headers))
		}
		exporter, err := otlptracehttp.New(ctx, options...)
		if err != nil {
			return nil, at(values.Place("otlp-endpoint"), &config.Error{Value: s.OtlpEndpoint.Mask(), Remedy: "traces cannot be sent there"})
		}
		about := resource.NewSchemaless(attribute.String("service.name", s.OtlpService), attribute.String("service.version", thisBuild().Version))
		t.exporter = sdk.NewTracerProvider(sdk.WithBatcher(exporter), sdk.WithResource(about))
		t.provider = t.exporter
		otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { logger.Warn("traces were not sent", "error", err) }))
	}
	t.Traces = telemetry.NewTraces(t.provider, nil)
	return t, nil
}

// tracesURL returns where traces go under an OTLP endpoint.
func tracesURL(endpoint config.Address) (string, error) {
	u, err := url.Parse(string(endpoint))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", &config.Error{Value: endpoint.Mask(), Remedy: "give an http or https URL such as http://localhost:4318"}
	}
	return u.JoinPath("v1", "traces").String(), nil
}

// otlpHeaders reads name=value pairs as the specification of the variable has them: separated by commas, values escaped
// as in a URL.
func otlpHeaders(text string) (map[string]string, error) {
	headers := map[string]string{}
	for i, pair := range strings.Split(text, ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(pair), "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if !ok || name == "" || err != nil {
			return nil, &config.Error{Remedy: fmt.Sprintf("pair %d is not name=value", i+1)}
		}
		headers[strings.TrimSpace(name)] = value
	}
	return headers, nil
}

// closeTraces is how long the last traces may take to be sent.
const closeTraces = 3 * time.Second

// close sends what is still to be sent.
func (t *tracing) close() {
	if t.exporter == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTraces)
	defer cancel()
	if err := t.exporter.Shutdown(ctx); err != nil {
		t.logger.Warn("the last traces were not sent", "error", err)
	}
}
