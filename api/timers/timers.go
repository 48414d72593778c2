// Package timers is the REST API of one-shot timers: "at this instant, make this HTTP call or publish this NATS message". A
// timer is a message on the queue timers; this package is a view of such messages and keeps nothing of its own.
package timers

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/belfryhq/belfry"
	"github.com/belfryhq/belfry/api/auth"
	"github.com/belfryhq/belfry/api/internal/body"
)

// Queue is where timers wait.
const Queue = "timers"

// Checker refuses, when a timer is created, a callback that could never be delivered. Targets that implement
// target.Checker are Checkers.
type Checker interface {
	Check(d belfry.Delivery) error
}

// Settings are those of the API.
type Settings struct {
	// Keys are the API keys.
	Keys auth.Keys
	// MinDelay is by how much execute_at must lie ahead; zero: it must not lie in the past.
	MinDelay time.Duration
	// Retention is how long finished timers are kept; zero: for ever.
	Retention time.Duration
	// MaxBody bounds a request's body in bytes; zero: 1 MiB.
	MaxBody int64
	// Callbacks are the callback types that can be delivered, http and nats, with what checks them; a nil Checker
	// accepts everything.
	Callbacks map[string]Checker
	// Logger receives what the replies do not tell; nil: slog.Default().
	Logger *slog.Logger
}

// api is the handler's state.
type api struct {
	client *belfry.Client
	s      Settings
}

// New makes the handler of /timers, /timers/ and /healthz.
func New(c *belfry.Client, s Settings) http.Handler {
	if s.MaxBody == 0 {
		s.MaxBody = 1 << 20
	}
	if s.Retention == 0 {
		s.Retention = belfry.Forever
	}
	if s.Logger == nil {
		s.Logger = slog.Default()
	}
	a := &api{client: c, s: s}
	mux := http.NewServeMux()
	route := func(path string, m methods) {
		mux.Handle(path, s.Keys.Require(m, func(w http.ResponseWriter, _ *http.Request) {
			reply(w, http.StatusUnauthorized, codeUnauthorized, "unauthorized", nil)
		}))
	}
	route("/timers", methods{http.MethodGet: a.list, http.MethodPost: a.create})
	route("/timers/batch", methods{http.MethodPost: a.batch})
	route("/timers/{id}", methods{http.MethodGet: a.get, http.MethodPut: a.update, http.MethodDelete: a.cancel})
	route("/timers/", methods{})
	mux.Handle("/healthz", methods{http.MethodGet: a.health})
	return mux
}

// healthWithin bounds how long a health check waits for the store.
const healthWithin = 3 * time.Second

// health answers whether the store can be reached, also when it hangs.
func (a *api) health(w http.ResponseWriter, r *http.Request) {
	type state struct {
		Status    string  `json:"status"`
		Database  string  `json:"database"`
		Timestamp instant `json:"timestamp"`
	}
	if err := a.ping(r.Context(), healthWithin); err != nil {
		a.s.Logger.Error("the store cannot be reached", "error", err)
		reply(w, http.StatusInternalServerError, codeInternal, "database connection failed",
			state{"degraded", "disconnected", instant(time.Now())})
		return
	}
	reply(w, http.StatusOK, codeOK, "healthy", state{"up", "connected", instant(time.Now())})
}

// ping asks the store, and does not wait for one that ignores its context.
func (a *api) ping(ctx context.Context, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	answer := make(chan error, 1)
	go func() { answer <- a.client.Store().Ping(ctx) }()
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// fail answers an error: the one place where errors become codes.
func (a *api) fail(w http.ResponseWriter, r *http.Request, err error) {
	var bad *body.Error
	var invalid *belfry.InvalidError
	switch {
	case errors.As(err, &bad):
		reply(w, bad.Status, codeInvalid, bad.Text, nil)
	case errors.As(err, &invalid):
		reply(w, http.StatusBadRequest, codeInvalid, invalid.Error(), nil)
	case errors.Is(err, belfry.ErrNotFound):
		reply(w, http.StatusNotFound, codeNotFound, "timer not found", nil)
	case errors.Is(err, context.Canceled) && r.Context().Err() != nil:
		return // the caller has gone
	case a.ping(context.WithoutCancel(r.Context()), time.Second) != nil:
		a.s.Logger.Error("the store cannot be reached", "path", r.URL.Path, "error", err)
		w.Header().Set("Retry-After", "1")
		reply(w, http.StatusServiceUnavailable, codeInternal, "the database cannot be reached; try again", nil)
	default:
		a.s.Logger.Error("a request failed", "method", r.Method, "path", r.URL.Path, "error", err)
		reply(w, http.StatusInternalServerError, codeInternal, "internal error", nil)
	}
}
