package telemetry_test

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/belfryhq/belfry"
	"github.com/belfryhq/belfry/store"
	"github.com/belfryhq/belfry/telemetry"
)

// epoch is an arbitrary whole millisecond that the tests count from.
var epoch = time.UnixMilli(1_800_000_000_000).UTC()

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// scraped are metrics with a registry of their own.
type scraped struct {
	*telemetry.Metrics
	t   testing.TB
	reg *prometheus.Registry
}

func newScraped(t testing.TB, settings telemetry.MetricsSettings) scraped {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	return scraped{telemetry.NewMetrics(reg, settings), t, reg}
}

func (s scraped) gather() map[string]*dto.MetricFamily {
	s.t.Helper()
	families, err := s.reg.Gather()
	if err != nil {
		s.t.Fatalf("Gather: %v", err)
	}
	byName := make(map[string]*dto.MetricFamily, len(families))
	for _, f := range families {
		byName[f.GetName()] = f
	}
	return byName
}

// value returns a metric with the labels, given as names and values in turn: of a histogram how many observations.
func (s scraped) value(name string, labels ...string) (value float64, known bool) {
	s.t.Helper()
	for _, m := range s.gather()[name].GetMetric() {
		if !hasLabels(m, labels) {
			continue
		}
		known = true
		switch {
		case m.Counter != nil:
			value += m.Counter.GetValue()
		case m.Gauge != nil:
			value += m.Gauge.GetValue()
		case m.Histogram != nil:
			value += float64(m.Histogram.GetSampleCount())
		}
	}
	return value, known
}

func (s scraped) want(want float64, name string, labels ...string) {
	s.t.Helper()
	if got, _ := s.value(name, labels...); got != want {
		s.t.Errorf("%s%v = %v, want %v", name, labels, got, want)
	}
}

// sum returns the sum of a histogram's observations.
func (s scraped) sum(name string, labels ...string) (sum float64) {
	s.t.Helper()
	for _, m := range s.gather()[name].GetMetric() {
		if hasLabels(m, labels) {
			sum += m.Histogram.GetSampleSum()
		}
	}
	return sum
}

func hasLabels(m *dto.Metric, labels []string) bool {
	have := map[string]string{}
	for _, l := range m.GetLabel() {
		have[l.GetName()] = l.GetValue()
	}
	for i := 0; i < len(labels); i += 2 {
		if value, ok := have[labels[i]]; !ok || value != labels[i+1] {
			return false
		}
	}
	return true
}

// running makes a client and a running worker of a store; the worker stops at the end of the test, or with stop.
func running(t *testing.T, s store.Store, client belfry.Settings, worker belfry.WorkerSettings) (c *belfry.Client, w *belfry.Worker, stop func()) {
	t.Helper()
	client.Logger = quiet
	c = belfry.New(s, client)
	w, err := belfry.NewWorker(c, worker)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
		c.Close()
	})
	t.Cleanup(stop)
	return c, w, stop
}

// bubble runs a test inside virtual time.
func bubble(t *testing.T, test func(t *testing.T)) {
	t.Parallel()
	synctest.Test(t, test)
}
