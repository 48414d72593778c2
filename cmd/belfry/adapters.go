package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/redis/go-redis/v9/logging"

	v1 "github.com/belfryhq/belfry/api/v1"
	"github.com/belfryhq/belfry/cmd/belfry/internal/config"
	"github.com/belfryhq/belfry/store"
	"github.com/belfryhq/belfry/store/memstore"
	"github.com/belfryhq/belfry/store/pgstore"
	"github.com/belfryhq/belfry/store/redisstore"
	"github.com/belfryhq/belfry/store/sqlitestore"
	"github.com/belfryhq/belfry/target"
	"github.com/belfryhq/belfry/target/httptarget"
	"github.com/belfryhq/belfry/target/natstarget"
)

// This file is the one place that knows which stores and targets there are. A new one is a line in a table.

// storeAdapter is a kind of store.
type storeAdapter struct {
	name    string
	schemes []string
	form    string // how its URL is written
	// open opens the store that a URL names, which has one of the schemes. Nil: this build does not have it.
	open func(ctx context.Context, m *Main, u storeURL) (openStore, error)
	// file returns the file that the store is; nil: it is none.
	file func(m *Main, u storeURL) (string, error)
	// migrations returns what changes the store's tables; nil: it has none.
	migrations func(m *Main, u storeURL) (migrator, error)
}

// storeAdapters is the table of stores.
func storeAdapters() []storeAdapter {
	return []storeAdapter{
		{name: "SQLite", schemes: []string{"sqlite"}, form: "sqlite:FILE", open: openSQLite, file: sqliteFile, migrations: sqliteMigrations},
		{name: "memory", schemes: []string{"memory"}, form: "memory:", open: openMemory},
		{
			name: "PostgreSQL", form: "postgres://USER:PASSWORD@HOST/DATABASE", open: openPostgres,
			schemes: []string{"postgres", "postgresql"}, migrations: postgresMigrations,
		},
		{name: "MySQL and MariaDB", schemes: []string{"mysql", "mariadb"}},
		{
			name: "Redis", form: "redis://HOST, redis+cluster://HOST,HOST, redis+sentinel://HOST?master=NAME", open: openRedis,
			schemes: []string{"redis", "rediss", "redis+cluster", "rediss+cluster", "redis+sentinel", "rediss+sentinel"},
		},
		{name: "MongoDB", schemes: []string{"mongodb", "mongodb+srv"}},
	}
}

// targetAdapter is a kind of target.
type targetAdapter struct {
	name string // what messages call it
	// open returns the target, or nil where it is not configured.
	open func(s *targetOptions) (closingTarget, error)
}

// targetAdapters is the table of targets.
func targetAdapters() []targetAdapter {
	return []targetAdapter{
		{name: "http", open: openHTTP},
		{name: "nats", open: openNATS},
	}
}

// closingTarget is a target that holds connections.
type closingTarget interface {
	target.Target
	target.Checker
	Close() error
}

// openStore is a store with what the program knows of it besides.
type openStore struct {
	store.Store
	file string // the file that it is; empty: it is none
}

// storeURL is a store's URL in parts. It is not a net/url one: file names are taken as they are.
type storeURL struct {
	scheme string
	rest   string // without the query
	query  url.Values
}

// parseStoreURL splits a store's URL and finds its adapter. The errors continue a sentence that begins with the place
// where the URL was set.
func parseStoreURL(u config.Address) (storeURL, storeAdapter, error) {
	text := string(u)
	scheme, rest, ok := strings.Cut(text, ":")
	if !ok {
		return storeURL{}, storeAdapter{}, &config.Error{Value: u.Mask(), Remedy: "is no URL of a store; give " + storeForms()}
	}
	rest, query, _ := strings.Cut(rest, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		return storeURL{}, storeAdapter{}, &config.Error{Value: u.Mask(), Remedy: "what follows the ? is not name=value"}
	}
	parsed := storeURL{scheme: strings.ToLower(scheme), rest: rest, query: values}
	for _, adapter := range storeAdapters() {
		for _, known := range adapter.schemes {
			if parsed.scheme != known {
				continue
			}
			if adapter.open == nil {
				return parsed, adapter, &config.Error{Value: u.Mask(), Remedy: adapter.name + " stores are not built in yet; give " + storeForms()}
			}
			return parsed, adapter, nil
		}
	}
	return parsed, storeAdapter{}, &config.Error{Value: u.Mask(), Remedy: "no store has this scheme; give " + storeForms()}
}

// storeForms tells the URLs that can be given.
func storeForms() string {
	var forms []string
	for _, adapter := range storeAdapters() {
		if adapter.open != nil {
			forms = append(forms, adapter.form)
		}
	}
	return strings.Join(forms, " or ")
}

// only refuses parameters that are not known.
func (u storeURL) only(known ...string) error {
	for name := range u.query {
		found := false
		for _, k := range known {
			found = found || name == k
		}
		if !found {
			return &config.Error{Value: name, Remedy: fmt.Sprintf("%s stores have no such parameter", u.scheme)}
		}
	}
	return nil
}

func openMemory(_ context.Context, _ *Main, u storeURL) (openStore, error) {
	if strings.Trim(u.rest, "/") != "" {
		return openStore{}, &config.Error{Value: u.rest, Remedy: "a memory store has no name; give memory:"}
	}
	return openStore{Store: memstore.New()}, u.only()
}

// sqliteFile returns the file of a SQLite URL: sqlite:name, sqlite:/path and sqlite:///path.
func sqliteFile(m *Main, u storeURL) (string, error) {
	name := strings.TrimPrefix(u.rest, "//")
	if name == "" || name == ":memory:" {
		return "", &config.Error{Value: u.scheme + ":" + u.rest, Remedy: "names no file; give sqlite:belfry.db, or memory: for what may be lost with the process"}
	}
	return m.path(name), nil
}

func openSQLite(ctx context.Context, m *Main, u storeURL) (openStore, error) {
	file, err := sqliteFile(m, u)
	if err != nil {
		return openStore{}, err
	}
	if err := u.only("synchronous"); err != nil {
		return openStore{}, err
	}
	var settings sqlitestore.Settings
	switch sync := strings.ToLower(u.query.Get("synchronous")); sync {
	case "", "full":
	case "normal":
		settings.Synchronous = sqlitestore.Normal
	default:
		return openStore{}, &config.Error{Value: "synchronous=" + sync, Remedy: "give full or normal"}
	}
	s, err := sqlitestore.Open(ctx, file, settings)
	if err != nil {
		return openStore{}, err
	}
	return openStore{Store: s, file: file}, nil
}

// openRedis opens a store on Redis. The store reads the URL itself, since it may name several hosts. What its client would
// log, failed connections, is in the errors of the operations that needed them.
func openRedis(ctx context.Context, _ *Main, u storeURL) (openStore, error) {
	logging.Disable()
	s, err := redisstore.Open(ctx, u.address(), redisstore.Settings{})
	if wrong := (*redisstore.URLError)(nil); errors.As(err, &wrong) {
		return openStore{}, &config.Error{Value: u.scheme, Remedy: wrong.Reason}
	}
	if err != nil {
		return openStore{}, err
	}
	return openStore{Store: s}, nil
}

// address returns the URL as it was given, for stores that read it themselves.
func (u storeURL) address() string {
	address := u.scheme + ":" + u.rest
	if len(u.query) > 0 {
		address += "?" + u.query.Encode()
	}
	return address
}

func openPostgres(ctx context.Context, _ *Main, u storeURL) (openStore, error) {
	if _, _, err := pgstore.ParseURL(u.address()); err != nil {
		return openStore{}, &config.Error{Value: u.scheme, Remedy: err.Error()}
	}
	s, err := pgstore.Open(ctx, u.address(), pgstore.Settings{})
	if err != nil {
		return openStore{}, err
	}
	return openStore{Store: s}, nil
}

// targetOptions are what targets are made of.
type targetOptions struct {
	targetSettings
	dev    bool
	values config.Values
	logger *slog.Logger
}

func openHTTP(o *targetOptions) (closingTarget, error) {
	settings := httptarget.Settings{Allow: o.EgressAllow, AllowPrivate: o.dev, Ports: o.EgressPorts}
	for i, text := range o.WebhookSecrets {
		secret, err := httptarget.ParseSecret(text.Reveal())
		if err != nil {
			return nil, o.values.Wrong("webhook-secrets", "", "number %d: %v", i+1, err)
		}
		settings.Secrets = append(settings.Secrets, secret)
	}
	return httptarget.New(settings)
}

// openNATS returns a target that connects by itself, now or when the server can be reached.
func openNATS(o *targetOptions) (closingTarget, error) {
	address, err := o.natsURL(o.values)
	if err != nil || address == "" {
		return nil, err
	}
	t, err := natstarget.New(natstarget.Settings{
		URL: string(address), User: o.NatsUser, Password: o.NatsPassword.Reveal(), Logger: o.logger,
	})
	if err != nil {
		place := "nats-url"
		if o.NatsURL == "" {
			place = "nats-host"
		}
		return nil, o.values.Wrong(place, address.Mask(), "%v", err)
	}
	return t, nil
}

// checkers are what refuses, when a message is accepted by a command that delivers nothing itself, what a target could
// never deliver. What the server will be configured to reach is not known here.
func checkers() map[string]v1.Checker {
	return map[string]v1.Checker{"http": &httptarget.Target{}, "nats": &natstarget.Target{}}
}

// migrator changes a store's tables.
type migrator interface {
	Up(ctx context.Context) ([]migration, error)
	Down(ctx context.Context) ([]migration, error)
	Status(ctx context.Context) ([]migration, error)
	// Dump returns the SQL that makes the tables.
	Dump() (string, error)
}

// migration is a step from one version of the tables to the next.
type migration struct {
	Version   int64     `json:"version"`
	Name      string    `json:"name"`
	AppliedAt time.Time `json:"applied_at,omitzero"`
}

// postgresMigrator is the migrator of a PostgreSQL database.
type postgresMigrator struct{ *pgstore.Migrator }

func postgresMigrations(_ *Main, u storeURL) (migrator, error) {
	migrations, err := pgstore.Migrations(u.address())
	return postgresMigrator{migrations}, err
}

// Up makes every step that is missing.
func (m postgresMigrator) Up(ctx context.Context) ([]migration, error) {
	made, err := m.Migrator.Up(ctx)
	return steps(made), err
}

// Down takes the last step back.
func (m postgresMigrator) Down(ctx context.Context) ([]migration, error) {
	made, err := m.Migrator.Down(ctx)
	if made == nil {
		return nil, err
	}
	return steps([]pgstore.Migration{*made}), err
}

// Status returns every step.
func (m postgresMigrator) Status(ctx context.Context) ([]migration, error) {
	all, err := m.Migrator.Status(ctx)
	return steps(all), err
}

// sqliteMigrator is the migrator of a SQLite file.
type sqliteMigrator struct{ *sqlitestore.Migrator }

func sqliteMigrations(m *Main, u storeURL) (migrator, error) {
	file, err := sqliteFile(m, u)
	if err != nil {
		return nil, err
	}
	migrations, err := sqlitestore.Migrations(file)
	return sqliteMigrator{migrations}, err
}

// Up makes every step that is missing.
func (m sqliteMigrator) Up(ctx context.Context) ([]migration, error) {
	made, err := m.Migrator.Up(ctx)
	return steps(made), err
}

// Down takes the last step back.
func (m sqliteMigrator) Down(ctx context.Context) ([]migration, error) {
	made, err := m.Migrator.Down(ctx)
	if made == nil {
		return nil, err
	}
	return steps([]sqlitestore.Migration{*made}), err
}

// Status returns every step.
func (m sqliteMigrator) Status(ctx context.Context) ([]migration, error) {
	all, err := m.Migrator.Status(ctx)
	return steps(all), err
}

// steps returns a store's migrations as the command shows them.
func steps[M sqlitestore.Migration | pgstore.Migration](all []M) []migration {
	out := make([]migration, len(all))
	for i, s := range all {
		out[i] = migration(s)
	}
	return out
}

// dialNATS connects to the NATS server once and says what answered.
func dialNATS(ctx context.Context, s *targetSettings, address config.Address) (string, error) {
	options := []nats.Option{nats.Name("belfry doctor"), nats.Timeout(checkWithin), nats.NoReconnect()}
	if s.NatsUser != "" {
		options = append(options, nats.UserInfo(s.NatsUser, s.NatsPassword.Reveal()))
	}
	conn, err := nats.Connect(string(address), options...)
	if err != nil {
		return "", fmt.Errorf("%s cannot be reached: %w", address.Mask(), err)
	}
	defer conn.Close()
	if err := conn.FlushWithContext(ctx); err != nil {
		return "", fmt.Errorf("%s does not answer: %w", address.Mask(), err)
	}
	return "version " + conn.ConnectedServerVersion(), nil
}
