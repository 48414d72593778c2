package telemetry

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/belfryhq/belfry"
)

// workers are the workers whose state scrapes show, added up.
type workers struct {
	held, running, queues, lost *prometheus.Desc

	mu  sync.Mutex
	all []*belfry.Worker
}

func newWorkers() *workers {
	return &workers{
		held:    prometheus.NewDesc("belfry_leases_held", "Leases in hand.", nil, nil),
		running: prometheus.NewDesc("belfry_leases_running", "Leases in hand whose delivery is under way.", nil, nil),
		queues:  prometheus.NewDesc("belfry_queues_known", "Queues the workers know of.", nil, nil),
		lost:    prometheus.NewDesc("belfry_leases_lost_total", "Leases lost while in hand.", nil, nil),
	}
}

func (w *workers) add(worker *belfry.Worker) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, worker)
}

// Describe is prometheus.Collector's.
func (w *workers) Describe(descs chan<- *prometheus.Desc) {
	descs <- w.held
	descs <- w.running
	descs <- w.queues
	descs <- w.lost
}

// Collect is prometheus.Collector's.
func (w *workers) Collect(metrics chan<- prometheus.Metric) {
	var held, running, queues, lost float64
	w.mu.Lock()
	for _, worker := range w.all {
		stats := worker.Stats()
		held += float64(stats.Held)
		running += float64(stats.Running)
		queues += float64(stats.Queues)
		lost += float64(stats.Lost)
	}
	w.mu.Unlock()
	metrics <- prometheus.MustNewConstMetric(w.held, prometheus.GaugeValue, held)
	metrics <- prometheus.MustNewConstMetric(w.running, prometheus.GaugeValue, running)
	metrics <- prometheus.MustNewConstMetric(w.queues, prometheus.GaugeValue, queues)
	metrics <- prometheus.MustNewConstMetric(w.lost, prometheus.CounterValue, lost)
}
