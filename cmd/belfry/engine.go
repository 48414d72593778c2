package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/belfryhq/belfry"
	"github.com/belfryhq/belfry/api/timers"
	"github.com/belfryhq/belfry/cmd/belfry/internal/config"
	"github.com/belfryhq/belfry/cmd/belfry/internal/web"
	"github.com/belfryhq/belfry/store"
	"github.com/belfryhq/belfry/target"
	"github.com/belfryhq/belfry/telemetry"
)

// engine is the store, the client, the targets and the worker of a server.
type engine struct {
	store    openStore
	info     store.Info
	pinger   *web.Pinger
	client   *belfry.Client
	worker   *belfry.Worker
	targets  map[string]closingTarget
	registry *prometheus.Registry
	traces   *tracing
	logger   *slog.Logger
}

// openWithin bounds how long a store may take to open; one that takes longer ends the program.
const openWithin = 30 * time.Second

// newEngine opens everything; close closes it.
func newEngine(ctx context.Context, m *Main, c *serveCommand, values config.Values, logger *slog.Logger) (e *engine, err error) {
	e = &engine{logger: logger, targets: map[string]closingTarget{}, registry: prometheus.NewRegistry()}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.close())
		}
	}()
	options := targetOptions{targetSettings: c.targetSettings, dev: c.Dev, values: values, logger: logger}
	for _, adapter := range targetAdapters() {
		t, err := adapter.open(&options)
		if err != nil {
			return e, err
		}
		if t != nil {
			e.targets[adapter.name] = t
		}
	}
	if e.traces, err = newTracing(ctx, &c.observeSettings, values, logger); err != nil {
		return e, err
	}
	if e.store, err = c.storeSettings.open(ctx, m, values); err != nil {
		return e, err
	}
	if err := e.inspect(ctx, c, values); err != nil {
		return e, err
	}
	return e, e.assemble(c, values)
}

// open opens the store that the settings name.
func (s *storeSettings) open(ctx context.Context, m *Main, values config.Values) (openStore, error) {
	address, place, err := s.storeURL(values)
	if err != nil {
		return openStore{}, err
	}
	u, adapter, err := parseStoreURL(address)
	if err != nil {
		return openStore{}, at(place, err)
	}
	ctx, cancel := context.WithTimeout(ctx, openWithin)
	defer cancel()
	opened, err := adapter.open(ctx, m, u)
	var wrong *config.Error
	switch {
	case errors.As(err, &wrong):
		return openStore{}, at(place, err)
	case err != nil && adapter.file == nil: // a file's error names the file
		return openStore{}, fmt.Errorf("%s: %q: %w", place, address.Mask(), err)
	}
	return opened, err
}

// at adds the place to the error of a setting.
func at(place string, err error) error {
	var wrong *config.Error
	if errors.As(err, &wrong) && wrong.Name == "" {
		wrong.Name = place
		return wrong
	}
	return err
}

// inspect finds out what the store's acknowledgements are worth, tells it, and refuses what was asked not to be.
func (e *engine) inspect(ctx context.Context, c *serveCommand, values config.Values) (err error) {
	if e.info, err = e.store.Inspect(ctx); err != nil {
		return err
	}
	e.logger.Info("store opened", "store", e.info.Name, "version", e.info.Version, "schema", e.info.Schema,
		"durability", e.info.Durability.String(), "settings", e.info.Details)
	if warning := e.info.Details["warning"]; warning != "" {
		e.logger.Warn("messages are in danger", "store", e.info.Name, "warning", warning)
	}
	if c.Durability == config.DurabilityStrict && e.info.Durability != store.Strict {
		return values.Wrong("durability", string(c.Durability), "the %s store is %s: %s", e.info.Name, e.info.Durability, weakness(&e.info))
	}
	return nil
}

// weakness says why a store is not strict and what to do.
func weakness(info *store.Info) string {
	if info.Durability == store.Volatile {
		return "what it holds is lost with the process; choose another store"
	}
	return fmt.Sprintf("a power cut can undo what it has acknowledged; its settings are %v", info.Details)
}

// pinged is a store that is asked whether it works no more than once a second, however many ask.
type pinged struct {
	store.Store
	pinger *web.Pinger
}

// Unwrap returns the store, so that its optional powers are found.
func (p pinged) Unwrap() store.Store { return p.Store }

// Ping answers what the store last answered.
func (p pinged) Ping(ctx context.Context) error { return p.pinger.Ping(ctx) }

// assemble connects the parts.
func (e *engine) assemble(c *serveCommand, values config.Values) (err error) {
	e.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	metrics := telemetry.NewMetrics(e.registry, telemetry.MetricsSettings{})
	measured := metrics.Store(e.store.Store)
	e.pinger = web.NewPinger(measured.Ping)
	e.client = belfry.New(pinged{measured, e.pinger}, belfry.Settings{Logger: e.logger, Annotate: e.traces.Annotate})

	settings := belfry.WorkerSettings{
		Queues:          c.workerQueues(),
		Targets:         map[string]belfry.Target{},
		Middleware:      []belfry.Middleware{e.traces.Middleware(), metrics.Middleware(), timersAgent},
		LaneConcurrency: int(c.PerHost),
		Node:            c.Node,
		Lease:           time.Duration(c.Lease),
		Grace:           time.Duration(c.Grace),
		Logger:          e.logger,
	}
	if c.Grace == 0 {
		settings.Grace = -1 // none
	}
	for name, t := range e.targets {
		settings.Targets[name] = t
	}
	if e.worker, err = belfry.NewWorker(e.client, settings); err != nil {
		return inSettings(err, values)
	}
	metrics.Watch(e.worker)
	return nil
}

// inSettings returns the library's error of a setting as one of the setting that it comes from.
func inSettings(err error, values config.Values) error {
	var invalid *belfry.InvalidError
	if !errors.As(err, &invalid) {
		return err
	}
	for _, name := range []string{"lease", "node", "grace"} {
		if invalid.Field == name {
			return values.Wrong(name, invalid.Value, "%s", invalid.Remedy)
		}
	}
	return values.Wrong("queues", invalid.Value, "%s %s", invalid.Field, invalid.Remedy)
}

// ownQueues are those that a server delivers from unless it is told otherwise.
func ownQueues() []string { return []string{timers.Queue, belfry.DefaultQueue, "schedules"} }

// perQueue is how many deliveries of a queue are made at once where nothing else is set. A host that does not answer takes up
// twice --per-host of them, half of these waiting for the others, until its deliveries time out: a queue has to have room
// for several such hosts.
const perQueue = 256

// workerQueues returns the server's own queues with the limits that are set for them, and those that are set besides.
func (s *engineSettings) workerQueues() []belfry.QueueWorker {
	limits := map[string]int{}
	for _, name := range ownQueues() {
		limits[name] = perQueue
	}
	for _, q := range s.Queues {
		limits[q.Name] = cmp.Or(q.Concurrency, perQueue)
	}
	queues := make([]belfry.QueueWorker, 0, len(limits))
	for name, concurrency := range limits {
		queues = append(queues, belfry.QueueWorker{Name: name, Concurrency: concurrency})
	}
	return queues
}

// timersUserAgent is how the requests of timers introduce themselves, as those who receive them know it.
const timersUserAgent = "timer-platform/0.1.0"

// timersAgent gives the requests of timers their User-Agent unless the timer has one of its own.
func timersAgent(next belfry.Target) belfry.Target {
	return target.Func(func(ctx context.Context, d belfry.Delivery) error {
		if d.Queue == timers.Queue && d.Target == "http" && !hasHeader(d.Headers, "User-Agent") {
			d.Headers = maps.Clone(d.Headers)
			if d.Headers == nil {
				d.Headers = map[string]string{}
			}
			d.Headers["User-Agent"] = timersUserAgent
		}
		return next.Deliver(ctx, d)
	})
}

func hasHeader(headers map[string]string, name string) bool {
	for given := range headers {
		if strings.EqualFold(given, name) {
			return true
		}
	}
	return false
}

// close ends what was opened, in the opposite order.
func (e *engine) close() error {
	var errs []error
	if e.client != nil {
		e.client.Close()
	}
	for name, t := range e.targets {
		if err := t.Close(); err != nil {
			errs = append(errs, fmt.Errorf("close target %s: %w", name, err))
		}
	}
	if e.store.Store != nil {
		if err := e.store.Close(); err != nil {
			errs = append(errs, fmt.Errorf("close the store: %w", err))
		}
	}
	if e.traces != nil {
		e.traces.close()
	}
	return errors.Join(errs...)
}
