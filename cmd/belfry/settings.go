package main

import (
	"net"
	"net/url"
	"strings"

	"github.com/belfryhq/belfry/cmd/belfry/internal/config"
)

// The settings, in groups that commands put together. Package config tells what the tags mean. .env.example and
// `belfry config` list them all.

// storeSettings say where messages are kept.
type storeSettings struct {
	Store       config.Address    `key:"store" placeholder:"URL" unset:"sqlite:belfry.db" help:"Where messages are kept: sqlite:FILE, postgres://USER:PASSWORD@HOST/DATABASE, redis://HOST, redis+cluster://HOST,HOST, redis+sentinel://HOST?master=NAME or memory:. Before the default DATABASE_URL counts, then PG_*."`
	DatabaseURL config.Address    `key:"-" var:"DATABASE_URL" noflag:"" hidden:"" help:"A store's URL, when BELFRY_STORE is not set."`
	PgHost      string            `key:"-" var:"PG_HOST" noflag:"" hidden:"" help:"PostgreSQL server, when neither BELFRY_STORE nor DATABASE_URL is set. It needs PG_USER and PG_DB_NAME."`
	PgPort      config.Port       `key:"-" var:"PG_PORT" noflag:"" hidden:"" default:"5432" help:"PostgreSQL port."`
	PgUser      string            `key:"-" var:"PG_USER" noflag:"" hidden:"" help:"PostgreSQL user."`
	PgPassword  config.Secret     `key:"-" var:"PG_PASSWORD" noflag:"" hidden:"" help:"PostgreSQL password."`
	PgDBName    string            `key:"-" var:"PG_DB_NAME" name:"pg-db-name" noflag:"" hidden:"" help:"PostgreSQL database."`
	Durability  config.Durability `key:"durability" default:"any" placeholder:"any|strict" help:"strict: refuse a store whose acknowledged writes a power cut could undo."`
}

// listenSettings say where the server answers.
type listenSettings struct {
	Addr           config.Host     `key:"addr" placeholder:"HOST" unset:"0.0.0.0, with --dev 127.0.0.1" help:"Host or address to listen on."`
	Port           config.Port     `key:"port" var:"PORT" default:"8080" help:"Port to listen on. It has no BELFRY_ variable: Kubernetes sets BELFRY_PORT to something else for a service named belfry."`
	MetricsAddr    config.HostPort `key:"metrics.addr" placeholder:"HOST:PORT" unset:"none, /metrics is beside the API" help:"Serve /metrics, and nothing else of the API but /readyz, on a listener of its own."`
	PprofAddr      config.HostPort `key:"pprof.addr" placeholder:"HOST:PORT" unset:"off" help:"Serve Go's profiles on a listener of their own."`
	MaxBody        config.Size     `key:"max_body" default:"1MiB" placeholder:"SIZE" help:"Largest body of a request."`
	MaxConnections config.Count    `key:"max_connections" default:"4096" placeholder:"N" help:"Connections served at once; further ones wait."`
}

// keySettings say who may use the API.
type keySettings struct {
	APIKey  config.APIKey `key:"api.key" name:"api-key" var:"API_KEY" noflag:"" hidden:"" unset:"with --dev a random one" help:"The API key, at least 32 characters."`
	APIKeys config.Keys   `key:"api.keys" name:"api-keys" noflag:"" hidden:"" help:"Further API keys with names for the log: name:key or name:sha256:HASH, separated by commas."`
}

// engineSettings say how messages are delivered.
type engineSettings struct {
	Node       string          `key:"node" placeholder:"NAME" unset:"none" help:"Name of this server among those that share the store, the same at every start: what its last run left is then taken up at once."`
	Lease      config.Duration `key:"lease" default:"30s" help:"How long a message stays with a server that gives no sign of life."`
	Grace      config.Duration `key:"grace" default:"30s" help:"How long deliveries may go on when the server is asked to stop."`
	DrainDelay config.Duration `key:"drain_delay" default:"0s" help:"How long the server goes on accepting after /readyz turned red, so that load balancers notice."`
	Queues     config.Queues   `key:"queues" placeholder:"NAME=N,…" unset:"timers, default and schedules" help:"Further queues to deliver from, or other limits for those it has: how many deliveries at once (256). A name may end in *."`
	PerHost    config.Count    `key:"per_host" default:"32" placeholder:"N" help:"How many deliveries at once go to one host and port. A slow host takes up at most twice as many of its queue's, so that the others go on."`
}

// targetSettings say what deliveries may reach and how they are signed.
type targetSettings struct {
	EgressAllow    config.Prefixes `key:"egress.allow" placeholder:"CIDR,…" unset:"none, with --dev loopback and private ones" help:"Addresses that callbacks may reach although they are private."`
	EgressPorts    config.Ports    `key:"egress.ports" placeholder:"PORT,…" unset:"any" help:"Ports that callbacks may reach."`
	WebhookSecrets config.Secrets  `key:"webhook.secrets" noflag:"" hidden:"" unset:"no signatures" help:"Sign HTTP deliveries by Standard Webhooks with each of these secrets (whsec_…): to rotate, give the new one beside the old one."`
	NatsURL        config.Address  `key:"nats.url" var:"BELFRY_NATS_URL,NATS_URL" placeholder:"URL" unset:"no NATS" help:"NATS server. Before the default NATS_HOST counts."`
	NatsHost       string          `key:"-" var:"NATS_HOST" noflag:"" hidden:"" help:"NATS server, when no URL is set."`
	NatsPort       config.Port     `key:"-" var:"NATS_PORT" noflag:"" hidden:"" default:"4222" help:"NATS port."`
	NatsUser       string          `key:"-" var:"NATS_USER" noflag:"" hidden:"" help:"NATS user, when the URL names none."`
	NatsPassword   config.Secret   `key:"-" var:"NATS_PASSWORD" noflag:"" hidden:"" help:"NATS password."`
}

// timersSettings are those of the timers API.
type timersSettings struct {
	TimersMinDelay  config.Duration  `key:"timers.min_delay" unset:"5s, with --dev 0s" help:"How far ahead a new timer must be at least."`
	TimersRetention config.Retention `key:"timers.retention" default:"forever" placeholder:"DURATION" help:"How long finished timers are kept."`
}

// observeSettings say what the program tells about itself.
type observeSettings struct {
	LogLevel     config.Level     `key:"log.level" var:"BELFRY_LOG_LEVEL,RUST_LOG" default:"info" placeholder:"LEVEL" help:"trace, debug, info, warn, error or off."`
	LogFormat    config.LogFormat `key:"log.format" default:"auto" placeholder:"FORMAT" help:"text, json, or auto: text on a terminal, else json."`
	OtlpEndpoint config.Address   `key:"otlp.endpoint" var:"OTEL_EXPORTER_OTLP_ENDPOINT" placeholder:"URL" unset:"no traces" help:"Where traces are sent, by OTLP over HTTP. The other OTEL_ variables hold too."`
	OtlpHeaders  config.Secret    `key:"otlp.headers" var:"OTEL_EXPORTER_OTLP_HEADERS" noflag:"" hidden:"" help:"Headers for the traces: name=value, separated by commas."`
	OtlpService  string           `key:"otlp.service" var:"OTEL_SERVICE_NAME" default:"belfry" placeholder:"NAME" help:"What the program is called in traces."`
}

// serveSettings are all settings of a server.
type serveSettings struct {
	storeSettings   `embed:"" group:"Store"`
	listenSettings  `embed:"" group:"Listen"`
	keySettings     `embed:"" group:"Keys"`
	engineSettings  `embed:"" group:"Engine"`
	targetSettings  `embed:"" group:"Targets"`
	timersSettings  `embed:"" group:"Timers"`
	observeSettings `embed:"" group:"Logs and traces"`
}

// remoteSettings say which server the commands ask that look at messages or change them.
type remoteSettings struct {
	Server config.Address `key:"server" placeholder:"URL" unset:"the one that has the store open, or none" help:"The server to ask."`
	Key    config.Secret  `key:"-" var:"BELFRY_KEY,API_KEY" placeholder:"KEY" help:"The API key for it."`
}

// defaultStore is where messages are kept when nothing else is said.
const defaultStore = "sqlite:belfry.db"

// storeURL returns the store's URL and the place where it was set.
func (s *storeSettings) storeURL(values config.Values) (u config.Address, place string, err error) {
	switch {
	case s.Store != "":
		return s.Store, values.Place("store"), nil
	case s.DatabaseURL != "":
		return s.DatabaseURL, values.Place("database-url"), nil
	}
	u, err = s.pgURL(values)
	if err == nil && u == "" {
		u = defaultStore
	}
	return u, values.Place("pg-host"), err
}

// pgURL puts PG_* together; a set that is not complete is an error that names what is missing.
func (s *storeSettings) pgURL(values config.Values) (config.Address, error) {
	if s.PgHost == "" && s.PgUser == "" && s.PgDBName == "" && s.PgPassword.IsZero() {
		return "", nil
	}
	var missing []string
	for _, v := range []struct{ name, value string }{
		{"PG_HOST", s.PgHost}, {"PG_USER", s.PgUser}, {"PG_DB_NAME", s.PgDBName},
	} {
		if v.value == "" {
			missing = append(missing, v.name)
		}
	}
	if len(missing) > 0 {
		return "", &config.Error{
			Name:   strings.Join(missing, ", "),
			Remedy: "not set, but other PG_ variables are; set all of PG_HOST, PG_USER, PG_DB_NAME, or none",
		}
	}
	u := url.URL{
		Scheme: "postgres", Host: net.JoinHostPort(s.PgHost, s.PgPort.String()), Path: "/" + s.PgDBName,
		User: url.UserPassword(s.PgUser, s.PgPassword.Reveal()),
	}
	return config.Address(u.String()), nil
}

// natsURL returns the URL of the NATS server; empty: none is configured.
func (s *targetSettings) natsURL(values config.Values) (config.Address, error) {
	if s.NatsURL == "" && s.NatsHost == "" {
		if s.NatsUser != "" || !s.NatsPassword.IsZero() {
			return "", &config.Error{Name: "NATS_HOST", Remedy: "not set, but NATS_USER or NATS_PASSWORD is; set it, or NATS_URL"}
		}
		return "", nil
	}
	if s.NatsURL != "" {
		return s.NatsURL, nil
	}
	return config.Address("nats://" + net.JoinHostPort(s.NatsHost, s.NatsPort.String())), nil
}
