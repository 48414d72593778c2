package telemetry_test

import (
	"context"
	"maps"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/belfryhq/belfry"
	"github.com/belfryhq/belfry/store/memstore"
	"github.com/belfryhq/belfry/telemetry"
)

// complete are metrics of which every family shows.
func complete(t *testing.T) scraped {
	t.Helper()
	m := newScraped(t, telemetry.MetricsSettings{})
	s := m.Store(clocked{Store: memstore.New()})
	claimed(t, s, "a")
	if err := m.Middleware()(returning(nil)).Deliver(context.Background(), belfry.Delivery{Kind: "k"}); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestMetricsKeepTheConventions(t *testing.T) {
	t.Parallel()
	families := slices.Collect(maps.Values(complete(t).gather()))
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

func TestRegisteringTwicePanics(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	one := prometheus.WrapRegistererWith(prometheus.Labels{"engine": "one"}, reg)
	two := prometheus.WrapRegistererWith(prometheus.Labels{"engine": "two"}, reg)
	telemetry.NewMetrics(one, telemetry.MetricsSettings{})
	telemetry.NewMetrics(two, telemetry.MetricsSettings{})
	defer func() {
		if recover() == nil {
			t.Error("two metrics of one name were registered")
		}
	}()
	telemetry.NewMetrics(one, telemetry.MetricsSettings{})
}
