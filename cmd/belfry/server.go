package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/belfryhq/belfry/api/timers"
	v1 "github.com/belfryhq/belfry/api/v1"
	"github.com/belfryhq/belfry/cmd/belfry/internal/web"
	"github.com/belfryhq/belfry/internal/sink"
)

// newServer takes the addresses; nothing is answered before run.
func newServer(ctx context.Context, c *serveCommand, e *engine, keys serveKeys) (s *server, err error) {
	s = &server{
		engine: e, logger: e.logger, workEnded: make(chan struct{}), grace: time.Duration(c.Grace), drainDelay: time.Duration(c.DrainDelay),
		ready: web.NewReadiness(e.pinger, e.info.Name, e.info.Durability.String()),
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	address := net.JoinHostPort(string(c.Addr), c.Port.String())
	s.api, err = web.Listen(ctx, web.Settings{
		Name: "the API", Address: address, Handler: s.wrap(s.routes(c, keys)), MaxConnections: int(c.MaxConnections), Logger: e.logger,
	})
	if err != nil {
		return s, err
	}
	s.url = reachable(s.api.Addr())
	if c.MetricsAddr != "" {
		if err := s.listen(ctx, "metrics", string(c.MetricsAddr), s.metricsRoutes()); err != nil {
			return s, err
		}
	}
	if c.PprofAddr != "" {
		return s, s.listen(ctx, "profiles", string(c.PprofAddr), profiles())
	}
	return s, nil
}

// listen adds a listener besides the API's.
func (s *server) listen(ctx context.Context, name, address string, handler http.Handler) error {
	w, err := web.Listen(ctx, web.Settings{
		Name: name, Address: address, Handler: web.Wrap(handler, s.logger), Logger: s.logger, Unbounded: true,
	})
	if err != nil {
		return err
	}
	s.others = append(s.others, w)
	s.logger.Info("listening for "+name, "address", w.Addr().String())
	return nil
}

// wrap puts around the API what every request goes through.
func (s *server) wrap(handler http.Handler) http.Handler {
	return web.Wrap(web.Trace(handler, s.engine.traces.provider), s.logger)
}

// reachable returns the URL at which this machine reaches a listener.
func reachable(addr *net.TCPAddr) string {
	ip := addr.AddrPort().Addr().Unmap()
	if ip.IsUnspecified() {
		ip = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	return "http://" + net.JoinHostPort(ip.String(), strconv.Itoa(addr.Port))
}

// routes returns all that the API's listener answers.
func (s *server) routes(c *serveCommand, keys serveKeys) http.Handler {
	client := s.engine.client
	callbacks, targets := map[string]timers.Checker{}, map[string]v1.Checker{}
	for name, t := range s.engine.targets {
		callbacks[name], targets[name] = t, t
	}
	timersAPI := timers.New(client, timers.Settings{
		Keys: keys.Keys, MinDelay: time.Duration(c.TimersMinDelay), Retention: time.Duration(c.TimersRetention),
		MaxBody: int64(c.MaxBody), Callbacks: callbacks, Logger: s.logger,
	})
	mux := http.NewServeMux()
	mux.Handle("/timers", timersAPI)
	mux.Handle("/timers/", timersAPI)
	mux.Handle("/healthz", timersAPI)
	mux.Handle("/readyz", s.ready)
	mux.Handle("/api/v1/", v1.New(client, v1.Settings{Keys: keys.Keys, MaxBody: int64(c.MaxBody), Targets: targets, Logger: s.logger}))
	if c.MetricsAddr == "" {
		mux.Handle("GET /metrics", s.metrics())
	}
	if c.Dev {
		mux.Handle("/_sink/", http.MaxBytesHandler(&sink.Sink{}, int64(c.MaxBody)))
	}
	mux.HandleFunc("/", notFound)
	return mux
}

// notFound answers what is no route.
func notFound(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusNotFound)
	_, _ = w.Write([]byte(`{"code":3,"message":"no such route","data":null}` + "\n"))
}

// metrics answers with the metrics.
func (s *server) metrics() http.Handler {
	return promhttp.HandlerFor(s.engine.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
}

// metricsRoutes returns what the listener of the metrics answers.
func (s *server) metricsRoutes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", s.metrics())
	mux.Handle("/readyz", s.ready)
	mux.HandleFunc("/", notFound)
	return mux
}

// profiles returns Go's profiles.
func profiles() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}

// errAtOnce ends the program without waiting for anything.
var errAtOnce = errors.New("stopped at once; deliveries under way were cut off and will be made again")

// run serves and delivers until ctx ends, a signal comes or something fails, and then stops gracefully: not ready any more,
// the drain delay, no more requests and claims, deliveries under way have the grace period. A second signal ends it at once.
func (s *server) run(ctx context.Context, signals <-chan os.Signal) error {
	work, stopWork := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWork()
	failed := make(chan error, 2+len(s.others))
	var running sync.WaitGroup
	start := func(run func() error) {
		running.Go(func() {
			if err := run(); err != nil {
				failed <- err
			}
		})
	}
	s.ready.Running()
	start(func() error { return s.work(work) })
	for _, w := range append([]*web.Server{s.api}, s.others...) {
		start(w.Run)
	}
	select {
	case <-ctx.Done():
	case signal := <-signals:
		s.logger.Info("stopping; a second signal ends the program at once", "signal", signal.String(), "grace", s.grace.String())
	case err := <-failed:
		failed <- err
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		s.stop(stopWork)
		running.Wait()
	}()
	select {
	case <-stopped:
	case <-signals:
		return errAtOnce
	}
	close(failed)
	var errs []error
	for err := range failed {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// work delivers until ctx ends, and says so.
func (s *server) work(ctx context.Context) error {
	defer close(s.workEnded)
	err := s.engine.worker.Run(ctx)
	s.ready.Ended("nothing is delivered any more")
	return err
}

// closeRequests bounds how long requests under way may take when the server stops.
const closeRequests = 5 * time.Second

// stop turns readiness red, waits out the drain delay, and ends the worker and the listeners; those of metrics and profiles
// last, so that the stop itself can be watched.
func (s *server) stop(stopWork context.CancelFunc) {
	s.ready.Ended("shutting down")
	time.Sleep(s.drainDelay)
	var requests sync.WaitGroup
	requests.Go(func() { shutdown(s.api) })
	stopWork()
	requests.Wait()
	<-s.workEnded
	for _, w := range s.others {
		shutdown(w)
	}
}

func shutdown(w *web.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), closeRequests)
	defer cancel()
	w.Shutdown(ctx)
}

// close gives back what newServer and announce took.
func (s *server) close() error {
	var errs []error
	if s.removeControl != nil {
		errs = append(errs, s.removeControl())
	}
	for _, w := range append([]*web.Server{s.api}, s.others...) {
		if w != nil {
			errs = append(errs, w.Close())
		}
	}
	return errors.Join(errs...)
}
