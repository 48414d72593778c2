package pgstore

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Settings are those of a Store. The zero value works.
type Settings struct {
	// Schema is the schema of the tables, which is created where it is missing; empty: public. Prefix is what their names
	// begin with; empty: belfry_. Both consist of a to z, 0 to 9 and _, at most 32, and do not begin with a digit.
	Schema, Prefix string
	// Connections bounds the connections of the pool; zero: 16. One more listens for wake-ups.
	Connections int
	// Pooled is for a pooler between this program and the server that gives each transaction another session, such as
	// PgBouncer in transaction mode: no statement is prepared for later, and wake-ups from other processes are sent but
	// not heard: what they accept is found by the scans of this one, within about a second.
	Pooled bool
	// StatementTimeout bounds a statement in the server, so that one whose client is gone holds no rows; zero: 30
	// seconds; negative: none. It is not set where Pooled is.
	StatementTimeout time.Duration
}

const (
	defaultPrefix      = "belfry_"
	defaultConnections = 16
	defaultTimeout     = 30 * time.Second
)

var identifier = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,31}$`)

func (s Settings) withDefaults() (Settings, error) {
	if s.Schema == "" {
		s.Schema = "public"
	}
	if s.Prefix == "" {
		s.Prefix = defaultPrefix
	}
	for field, value := range map[string]string{"schema": s.Schema, "prefix": s.Prefix} {
		if !identifier.MatchString(value) {
			return s, fmt.Errorf("%s %.64q: use a to z, 0 to 9 and _, at most 32 of them, not beginning with a digit", field, value)
		}
	}
	if s.Connections == 0 {
		s.Connections = defaultConnections
	}
	if s.Connections < 2 {
		return s, fmt.Errorf("connections: %d are too few, give at least 2", s.Connections)
	}
	if s.StatementTimeout == 0 {
		s.StatementTimeout = defaultTimeout
	}
	return s, nil
}

// tables is what stands before the names of tables.
func (s Settings) tables() string { return s.Schema + "." + s.Prefix }

// ParseURL reads a URL as Open takes it: one of PostgreSQL, whose parameters may be schema, prefix, connections, pooled and
// statement_timeout beside those that pgx knows. It returns the URL without ours.
func ParseURL(address string) (rest string, s Settings, err error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", s, errors.New("it is not a URL: write it as postgres://user:password@host:5432/database")
	}
	query := u.Query()
	take := func(name string) string {
		value := query.Get(name)
		query.Del(name)
		return value
	}
	s.Schema, s.Prefix = take("schema"), take("prefix")
	if text := take("connections"); text != "" {
		if s.Connections, err = strconv.Atoi(text); err != nil {
			return "", s, fmt.Errorf("connections %.64q is not a number", text)
		}
	}
	if text := take("pooled"); text != "" {
		if s.Pooled, err = strconv.ParseBool(text); err != nil {
			return "", s, fmt.Errorf("pooled %.64q is neither true nor false", text)
		}
	}
	if text := take("statement_timeout"); text != "" {
		if s.StatementTimeout, err = time.ParseDuration(text); err != nil {
			return "", s, fmt.Errorf("statement_timeout %.64q is not a duration such as 30s", text)
		}
	}
	u.RawQuery = query.Encode()
	return u.String(), s, nil
}

// config is what the pool is made of.
func (s Settings) config(address string) (*pgxpool.Config, error) {
	conf, err := pgxpool.ParseConfig(address)
	if err != nil {
		why := errors.New("write it as postgres://user:password@host:5432/database")
		if cause := errors.Unwrap(err); cause != nil {
			why = cause // err itself quotes the URL
		}
		return nil, fmt.Errorf("it is not a URL of PostgreSQL: %w", why)
	}
	conf.MaxConns = int32(s.Connections)
	conf.MinConns = 1
	conf.MaxConnIdleTime = 5 * time.Minute
	c := conf.ConnConfig
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = 5 * time.Second
	}
	if s.Pooled {
		// Each execution brings its statement along, without a name; what the types of its arguments are is asked once.
		c.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
		c.StatementCacheCapacity = 0
		return conf, nil
	}
	set := func(name, value string) {
		if _, given := c.RuntimeParams[name]; !given {
			c.RuntimeParams[name] = value
		}
	}
	set("application_name", "belfry")
	if s.StatementTimeout > 0 {
		ms := strconv.FormatInt(s.StatementTimeout.Milliseconds(), 10)
		set("statement_timeout", ms)
		set("idle_in_transaction_session_timeout", ms)
	}
	set("tcp_user_timeout", "30000")
	// Every statement has an index in whose order it reads. A planner that knows nothing of a table yet may prefer to read
	// all of it.
	set("enable_seqscan", "off")
	set("enable_bitmapscan", "off")
	return conf, nil
}
