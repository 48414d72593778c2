package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/belfryhq/belfry"
	"github.com/belfryhq/belfry/store"
)

// MetricsSettings are those of Metrics. The zero value works.
type MetricsSettings struct {
	// BacklogEvery is how old the gauges of due queues and of nodes may be; zero: 5 seconds; negative: there are none.
	BacklogEvery time.Duration
	// CountEvery is how old the gauges of counted messages may be; zero: 30 seconds; negative: there are none. A count
	// costs a database time in proportion to what waits, so one that takes long is made more rarely: at most a fiftieth
	// of the time is spent on each. One that takes longer than the ScrapeBudget is never shown.
	CountEvery time.Duration
	// ScrapeBudget bounds the time that one scrape spends on asking stores; zero: 2 seconds. What is left unasked keeps
	// its value until the next scrape.
	ScrapeBudget time.Duration
	// Overdue is how late a message is that counts as overdue; zero: one minute.
	Overdue time.Duration
	// MaxKinds is how many pairs of kind and target have a label of their own, first come, first served; later kinds are
	// "other". Zero: 200.
	MaxKinds int
}

const (
	defaultBacklogEvery = 5 * time.Second
	defaultCountEvery   = 30 * time.Second
	defaultScrapeBudget = 2 * time.Second
	defaultOverdue      = time.Minute
	defaultMaxKinds     = 200
)

func (s MetricsSettings) withDefaults() MetricsSettings {
	setDefault(&s.BacklogEvery, defaultBacklogEvery)
	setDefault(&s.CountEvery, defaultCountEvery)
	setDefault(&s.ScrapeBudget, defaultScrapeBudget)
	setDefault(&s.Overdue, defaultOverdue)
	setDefault(&s.MaxKinds, defaultMaxKinds)
	return s
}

func setDefault[T comparable](value *T, fallback T) {
	var zero T
	if *value == zero {
		*value = fallback
	}
}

// Metrics measures stores, deliveries and workers of one process for Prometheus. It is safe for concurrent use.
type Metrics struct {
	calls      *calls
	deliveries *deliveries
	backlog    *backlog
	workers    *workers
}

// NewMetrics makes the metrics and registers them. It panics when the registerer has metrics of these names already: that
// is a mistake in the program. Several engines of one process share one Metrics, or each has its own with a registerer
// that adds a label with the engine's name (prometheus.WrapRegistererWith).
func NewMetrics(reg prometheus.Registerer, settings MetricsSettings) *Metrics {
	settings = settings.withDefaults()
	m := &Metrics{
		calls:      newCalls(),
		deliveries: newDeliveries(settings.MaxKinds),
		backlog:    newBacklog(settings),
		workers:    newWorkers(),
	}
	reg.MustRegister(m.calls.collectors()...)
	reg.MustRegister(m.deliveries.collectors()...)
	reg.MustRegister(m.backlog, m.workers)
	return m
}

// Store wraps a store so that its calls are measured, and lets scrapes ask it for its backlog; those reads are measured
// too. Optional powers of the store are found through the wrapper and are not measured: what is put inside a caller's
// transaction counts when it is claimed. Wrap a store once.
func (m *Metrics) Store(s store.Store) store.Store {
	wrapped := newMeasured(s, m.calls)
	m.backlog.add(wrapped)
	return wrapped
}

// Watch shows a worker's leases and queues at each scrape. It may be called before the worker runs.
func (m *Metrics) Watch(w *belfry.Worker) { m.workers.add(w) }
