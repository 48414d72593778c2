package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/belfryhq/belfry/api/auth"
	"github.com/belfryhq/belfry/cmd/belfry/internal/config"
	"github.com/belfryhq/belfry/cmd/belfry/internal/control"
	"github.com/belfryhq/belfry/cmd/belfry/internal/web"
)

// serveCommand runs a server.
type serveCommand struct {
	Dev bool `help:"Development: no set-up, loopback only, a random key, callbacks to private addresses allowed, and a request sink at /_sink/<name>."`

	serveSettings `embed:""`
}

// Run serves until it is told to stop.
func (c *serveCommand) Run(ctx context.Context, m *Main, values config.Values, sources *config.Sources) (err error) {
	logger := m.logger(c.LogLevel, c.LogFormat)
	for _, name := range sources.Unknown(values, otherVars()...) {
		logger.Warn("no setting has this name; `belfry config` lists them", "variable", name)
	}
	if err := c.complete(values); err != nil {
		return err
	}
	keys, err := c.keys(values)
	if err != nil {
		return err
	}
	raiseParallelism(m)
	e, err := newEngine(ctx, m, c, values, logger)
	if err != nil {
		return err
	}
	defer func() {
		if !errors.Is(err, errAtOnce) {
			err = errors.Join(err, e.close())
		}
	}()
	s, err := newServer(ctx, c, e, keys)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.announce(m, c, keys); err != nil {
		return err
	}
	return s.run(ctx, m.Signals)
}

// otherVars are Belfry's variables that are no settings of a server.
func otherVars() []string {
	return []string{
		"BELFRY_CONFIG", "BELFRY_SERVER", "BELFRY_KEY", // of commands
		"BELFRY_PORT", "BELFRY_SERVICE_HOST", "BELFRY_SERVICE_PORT", // of Kubernetes
	}
}

// complete fills in what depends on --dev, and refuses what does not go together.
func (c *serveCommand) complete(values config.Values) error {
	if !c.Dev {
		if c.Addr == "" {
			c.Addr = "0.0.0.0"
		}
		if !values.IsSet("timers-min-delay") {
			c.TimersMinDelay = config.Duration(5 * time.Second)
		}
		return nil
	}
	if c.Addr == "" {
		c.Addr = "127.0.0.1"
	}
	if addr, err := netip.ParseAddr(string(c.Addr)); c.Addr != "localhost" && (err != nil || !addr.IsLoopback()) {
		return values.Wrong("addr", string(c.Addr), "with --dev the server listens on loopback only, as it lets callbacks reach private addresses; give 127.0.0.1 or leave out --dev")
	}
	return nil
}

// serveKeys are the keys of a server.
type serveKeys struct {
	auth.Keys
	shown string // the one that --dev shows; empty: none
	local string // the one in the control file
}

// keys returns the API keys: those that are set, with --dev a random one where none is, and one for the control file.
func (c *serveCommand) keys(values config.Values) (keys serveKeys, err error) {
	specs := c.APIKeys.Specs()
	switch {
	case !c.APIKey.IsZero():
		keys.shown = c.APIKey.Reveal()
	case c.Dev:
		keys.shown = rand.Text() + rand.Text()
	case len(specs) == 0:
		return keys, &config.Error{
			Name:   values.Place("api-key"),
			Remedy: "not set; set it, or BELFRY_API_KEYS, to a key that clients then send in X-API-Key; make one with: openssl rand -hex 32",
		}
	}
	if keys.shown != "" {
		specs = append(specs, "API_KEY:"+keys.shown)
	}
	keys.local = rand.Text() + rand.Text()
	if keys.Keys, err = auth.Parse(append(specs, "local commands:"+keys.local)...); err != nil {
		return keys, &config.Error{Name: values.Place("api-keys"), Remedy: err.Error()}
	}
	return keys, nil
}

// spareParallelism is by how many threads GOMAXPROCS exceeds the cores. Go's timers fire when a processor looks at them;
// when deliveries, answers to encode and the garbage collector keep every one busy, a timer waits for a time slice (10 ms
// and more). With a few more than there are cores the kernel, which slices finer, finds one that is free.
const spareParallelism = 4

// raiseParallelism sets GOMAXPROCS to the cores and some, unless the user has set it or the container has a limit of its
// own, beyond which the kernel would stop the process for the rest of each period. GOMEMLIMIT is Go's own and holds.
func raiseParallelism(m *Main) {
	for _, pair := range m.Environ {
		if strings.HasPrefix(pair, "GOMAXPROCS=") {
			return
		}
	}
	if runtime.GOMAXPROCS(0) == runtime.NumCPU() {
		runtime.GOMAXPROCS(runtime.NumCPU() + spareParallelism)
	}
}

// announce tells where the server answers: in the control file, then, as who reads it may run commands at once, in the log, with
// --dev also how to try it.
func (s *server) announce(m *Main, c *serveCommand, keys serveKeys) error {
	if s.engine.store.file != "" {
		remove, err := control.Write(s.engine.store.file, control.Server{URL: s.url, PID: os.Getpid(), Key: keys.local})
		if err != nil {
			return err
		}
		s.removeControl = remove
	}
	s.logger.Info("listening", "url", s.url, "store", s.engine.info.Name, "version", thisBuild().Version)
	if !c.Dev {
		return nil
	}
	_, err := fmt.Fprintf(m.Stdout, devText, s.url, keys.shown, s.engine.describeStore(), s.url, keys.shown, s.url, s.url)
	return err
}

// devText greets whoever starts a server with --dev.
const devText = `
Belfry runs in development mode. Ctrl-C stops it.

  URL    %s
  Key    %s
  Store  %s

Create a timer that calls an endpoint in half a second:

  curl -s %s/timers -H 'X-API-Key: %s' -H 'Content-Type: application/json' \
    -d '{"delay":"500ms","callback":{"type":"http","url":"%s/_sink/hello","payload":{"hello":"world"}}}'

See what has arrived there:

  curl -s %s/_sink/hello

`

// describeStore tells where messages are kept.
func (e *engine) describeStore() string {
	if e.store.file == "" {
		return e.info.Name + " (" + e.info.Durability.String() + ")"
	}
	return e.store.file
}

// server is everything that runs.
type server struct {
	engine        *engine
	logger        *slog.Logger
	ready         *web.Readiness
	api           *web.Server
	others        []*web.Server // of metrics and profiles
	url           string
	workEnded     chan struct{}
	grace         time.Duration
	drainDelay    time.Duration
	removeControl func() error
}
