package telemetry

import (
	"context"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/belfryhq/belfry"
	"github.com/belfryhq/belfry/target"
)

var (
	lagBuckets = []float64{
		.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600,
	}
	deliveryBuckets = []float64{
		.0001, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300,
	}
)

const (
	handlerLabel = "handler" // the target of messages that name none
	otherLabel   = "other"   // what has no label of its own
	maxTargets   = 50        // targets with a label of their own
)

// Middleware measures deliveries. Put it first, so that it sees what all others do. It may be used in several workers.
func (m *Metrics) Middleware() belfry.Middleware {
	return func(next belfry.Target) belfry.Target {
		return target.Func(func(ctx context.Context, d belfry.Delivery) error {
			return m.deliveries.measure(ctx, d, next)
		})
	}
}

// deliveries are the metrics of what targets are given and what they make of it.
type deliveries struct {
	attempts *prometheus.CounterVec
	lag      *prometheus.HistogramVec
	seconds  *prometheus.HistogramVec
	inFlight *prometheus.GaugeVec
	maxKinds int

	mu      sync.RWMutex
	kinds   map[kindKey]*kindMetrics // those with a label of their own, and "other" of each target
	targets map[string]*targetMetrics
}

// kindKey is a pair of labels.
type kindKey struct{ kind, target string }

// kindMetrics are a pair's metrics with their labels bound.
type kindMetrics struct {
	*targetMetrics
	attempts [outcomes]prometheus.Counter
}

// targetMetrics are a target's metrics with their label bound.
type targetMetrics struct {
	label    string
	lag      prometheus.Observer
	seconds  prometheus.Observer
	inFlight prometheus.Gauge
}

func newDeliveries(maxKinds int) *deliveries {
	labels := []string{"target"}
	return &deliveries{
		attempts: counters("belfry_attempts_total", "Deliveries that ended, by how.", "result", "kind", "target"),
		lag: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "belfry_fire_lag_seconds",
			Help: "How long after the instant it was due a delivery began, retries included.", Buckets: lagBuckets,
		}, labels),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "belfry_delivery_seconds", Help: "How long deliveries took.", Buckets: deliveryBuckets,
		}, labels),
		inFlight: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "belfry_deliveries_in_flight", Help: "Deliveries under way.",
		}, labels),
		maxKinds: maxKinds,
		kinds:    map[kindKey]*kindMetrics{},
		targets:  map[string]*targetMetrics{},
	}
}

func (ds *deliveries) collectors() []prometheus.Collector {
	return []prometheus.Collector{ds.attempts, ds.lag, ds.seconds, ds.inFlight}
}

// measure delivers and takes note. A panic, which the engine turns into a failed attempt, counts as one.
func (ds *deliveries) measure(ctx context.Context, d belfry.Delivery, next belfry.Target) error {
	k := ds.of(d.Kind, d.Target)
	start := time.Now()
	if !d.DueAt.IsZero() {
		k.lag.Observe(max(start.Sub(d.DueAt), 0).Seconds())
	}
	k.inFlight.Inc()
	ended := retry
	defer func() {
		k.inFlight.Dec()
		k.seconds.Observe(time.Since(start).Seconds())
		k.attempts[ended].Inc()
	}()
	err := next.Deliver(ctx, d)
	ended = outcomeOf(ctx, err)
	return err
}

// of returns the metrics of a kind and a target.
func (ds *deliveries) of(kind, targetName string) *kindMetrics {
	ds.mu.RLock()
	k, ok := ds.kinds[kindKey{kind, targetName}]
	ds.mu.RUnlock()
	if ok {
		return k
	}
	ds.mu.Lock()
	defer ds.mu.Unlock()
	return ds.add(kind, targetName)
}

// add finds or makes the metrics of a pair, those of "other" where there are too many. Called with mu held.
func (ds *deliveries) add(kind, targetName string) *kindMetrics {
	t := ds.target(targetName)
	if len(ds.kinds) >= ds.maxKinds || !utf8.ValidString(kind) {
		kind, targetName = otherLabel, t.label
	}
	key := kindKey{kind, targetName}
	if k, ok := ds.kinds[key]; ok {
		return k
	}
	k := &kindMetrics{targetMetrics: t}
	for o := range outcomes {
		k.attempts[o] = ds.attempts.WithLabelValues(outcomeLabels[o], kind, t.label)
	}
	ds.kinds[key] = k
	return k
}

// target finds or makes the metrics of a target, those of "other" where there are too many. Called with mu held.
func (ds *deliveries) target(name string) *targetMetrics {
	label := name
	switch {
	case name == "":
		label = handlerLabel
	case !utf8.ValidString(name), len(ds.targets) >= maxTargets && ds.targets[name] == nil:
		label = otherLabel
	}
	if t, ok := ds.targets[label]; ok {
		return t
	}
	t := &targetMetrics{
		label: label, lag: ds.lag.WithLabelValues(label), seconds: ds.seconds.WithLabelValues(label),
		inFlight: ds.inFlight.WithLabelValues(label),
	}
	ds.targets[label] = t
	return t
}
