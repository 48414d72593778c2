package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// write puts files into a new folder.
func write(t *testing.T, files map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Whatever is wrong with the configuration ends the program before anything is opened, with one line that names the place,
// the value unless it is a secret, and what would be right.
func TestBadConfigurationIsRefusedInOneLine(t *testing.T) {
	t.Parallel()
	secret := "s3cr3t-that-must-not-be-told"
	for name, tt := range map[string]struct {
		env   []string
		files map[string]string
		args  []string // after serve
		want  string
	}{
		"no key":             {want: "API_KEY: not set; set it, or BELFRY_API_KEYS"},
		"short key":          {env: []string{"API_KEY=" + secret}, want: "API_KEY: the key has 28 characters and needs at least 32"},
		"key with a blank":   {env: []string{"API_KEY=" + secret + " " + secret}, want: "API_KEY: character 29 of the key is not printable ASCII"},
		"short named key":    {env: []string{"BELFRY_API_KEYS=ops:" + secret}, want: `BELFRY_API_KEYS: key "ops" has 28 characters`},
		"nameless key":       {env: []string{"BELFRY_API_KEYS=" + secret + secret}, want: "BELFRY_API_KEYS: key 1: write it as name:key"},
		"the name API_KEY":   {env: []string{"API_KEY=" + secret + secret, "BELFRY_API_KEYS=API_KEY:" + secret + secret}, want: `BELFRY_API_KEYS: key "API_KEY" is given twice`},
		"key as a flag":      {args: []string{"--api-key=" + secret + secret}, want: "--api-key: command lines are visible to every process; set API_KEY"},
		"unknown flag":       {args: []string{"--prot=1"}, want: "unknown flag --prot"},
		"unknown command":    {args: []string{"extra"}, want: "unexpected argument extra"},
		"port":               {env: []string{"PORT=http"}, want: `PORT: "http": give a port from 1 to 65535`},
		"port as a flag":     {args: []string{"--port=99999"}, want: `--port: "99999": give a port from 1 to 65535`},
		"port in .env":       {files: map[string]string{".env": "PORT=x\n"}, want: `.env: PORT: "x": give a port`},
		"port in the file":   {files: map[string]string{"belfry.yaml": "port: x\n"}, want: `belfry.yaml: port: "x": give a port`},
		"address":            {args: []string{"--addr=localhost:80"}, want: `--addr: "localhost:80": give a host or an address`},
		"address with dev":   {args: []string{"--dev", "--addr=0.0.0.0"}, want: `--addr: "0.0.0.0": with --dev the server listens on loopback only`},
		"metrics address":    {env: []string{"BELFRY_METRICS_ADDR=9090"}, want: `BELFRY_METRICS_ADDR: "9090": give a host and a port`},
		"lease":              {env: []string{"BELFRY_LEASE=soon"}, want: `BELFRY_LEASE: "soon": give a duration such as 30s`},
		"short lease":        {env: []string{"API_KEY=" + secret + secret, "BELFRY_LEASE=10ms", "BELFRY_STORE=memory:"}, want: `BELFRY_LEASE: "10ms": must be at least 1s`},
		"negative grace":     {args: []string{"--grace=-1s"}, want: `--grace: "-1s": must not be negative`},
		"queues":             {env: []string{"BELFRY_QUEUES=mail=many"}, want: `BELFRY_QUEUES: "mail=many": give queues such as mail=20`},
		"a queue twice":      {env: []string{"BELFRY_QUEUES=mail=1,mail=2"}, want: `BELFRY_QUEUES: "mail=2": the queue is named twice`},
		"egress range":       {env: []string{"BELFRY_EGRESS_ALLOW=10.0.0.0/33"}, want: `BELFRY_EGRESS_ALLOW: "10.0.0.0/33": give address ranges`},
		"egress bits":        {env: []string{"BELFRY_EGRESS_ALLOW=10.0.0.1/8"}, want: `BELFRY_EGRESS_ALLOW: "10.0.0.1/8": has bits beyond its length; did you mean 10.0.0.0/8?`},
		"egress port":        {env: []string{"BELFRY_EGRESS_PORTS=443,0"}, want: `BELFRY_EGRESS_PORTS: "0": give ports from 1 to 65535`},
		"webhook secret":     {env: []string{"API_KEY=" + secret + secret, "BELFRY_WEBHOOK_SECRETS=" + secret}, want: "BELFRY_WEBHOOK_SECRETS: number 1: secret: "},
		"retention":          {env: []string{"BELFRY_TIMERS_RETENTION=0s"}, want: `BELFRY_TIMERS_RETENTION: "0s": give a duration such as 720h or 30d`},
		"log level":          {env: []string{"RUST_LOG=loud"}, want: `RUST_LOG: "loud": give trace, debug, info, warn, error or off`},
		"log format":         {args: []string{"--log-format=xml"}, want: `--log-format: "xml": give auto, text or json`},
		"size":               {args: []string{"--max-body=big"}, want: `--max-body: "big": give a number of bytes`},
		"count":              {args: []string{"--max-connections=0"}, want: `--max-connections: "0": give a number of 1 or more`},
		"durability word":    {args: []string{"--durability=total"}, want: `--durability: "total": give any or strict`},
		"volatile store":     {env: []string{"API_KEY=" + secret + secret}, args: []string{"--store=memory:", "--durability=strict"}, want: `--durability: "strict": the memory store is volatile`},
		"weak store":         {env: []string{"API_KEY=" + secret + secret, "BELFRY_DURABILITY=strict"}, args: []string{"--store=sqlite:x.db?synchronous=normal"}, want: `BELFRY_DURABILITY: "strict": the sqlite store is weak`},
		"store without one":  {env: []string{"API_KEY=" + secret + secret, "BELFRY_STORE=belfry.db"}, want: `BELFRY_STORE: "belfry.db": is no URL of a store; give sqlite:FILE or memory:`},
		"store of no kind":   {env: []string{"API_KEY=" + secret + secret}, args: []string{"--store=oracle://x"}, want: `--store: "oracle://x": no store has this scheme; give sqlite:FILE or memory:`},
		"store to come":      {env: []string{"API_KEY=" + secret + secret, "DATABASE_URL=mongodb://u:" + secret + "@h/db?x=" + secret}, want: `DATABASE_URL: "mongodb://u:***@h/db?***": MongoDB stores are not built in yet; give sqlite:FILE or `},
		"redis":              {env: []string{"API_KEY=" + secret + secret, "BELFRY_STORE=redis+sentinel://:" + secret + "@h"}, want: `BELFRY_STORE: "redis+sentinel": a Sentinel URL names its master`},
		"mysql":              {env: []string{"API_KEY=" + secret + secret, "BELFRY_STORE=mysql://h"}, want: "MySQL and MariaDB stores are not built in yet"},
		"mongodb":            {env: []string{"API_KEY=" + secret + secret, "BELFRY_STORE=mongodb://h"}, want: "MongoDB stores are not built in yet"},
		"PostgreSQL":         {env: []string{"API_KEY=" + secret + secret, "DATABASE_URL=postgres://u:" + secret + "@h/db?connections=many"}, want: `DATABASE_URL: "postgres": connections`},
		"PG_ set incomplete": {env: []string{"API_KEY=" + secret + secret, "PG_HOST=h", "PG_PASSWORD=" + secret}, want: "PG_USER, PG_DB_NAME: not set, but other PG_ variables are"},
		"no file":            {env: []string{"API_KEY=" + secret + secret}, args: []string{"--store=sqlite:"}, want: `--store: "sqlite:": names no file`},
		"SQLite in memory":   {env: []string{"API_KEY=" + secret + secret}, args: []string{"--store=sqlite::memory:"}, want: `--store: "sqlite::memory:": names no file`},
		"store parameter":    {env: []string{"API_KEY=" + secret + secret}, args: []string{"--store=sqlite:x.db?mode=ro"}, want: `--store: "mode": sqlite stores have no such parameter`},
		"store value":        {env: []string{"API_KEY=" + secret + secret}, args: []string{"--store=sqlite:x.db?synchronous=off"}, want: `--store: "synchronous=off": give full or normal`},
		"NATS without host":  {env: []string{"API_KEY=" + secret + secret, "NATS_PASSWORD=" + secret}, want: "NATS_HOST: not set, but NATS_USER or NATS_PASSWORD is"},
		"NATS scheme":        {env: []string{"API_KEY=" + secret + secret, "NATS_URL=http://u:" + secret + "@h"}, want: `NATS_URL: "http://u:***@h": `},
		"OTLP endpoint":      {env: []string{"API_KEY=" + secret + secret, "OTEL_EXPORTER_OTLP_ENDPOINT=localhost:4318"}, want: `OTEL_EXPORTER_OTLP_ENDPOINT: "localhost:4318": give an http or https URL`},
		"OTLP headers":       {env: []string{"API_KEY=" + secret + secret, "OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:1", "OTEL_EXPORTER_OTLP_HEADERS=" + secret}, want: "OTEL_EXPORTER_OTLP_HEADERS: pair 1 is not name=value"},
		".env":               {files: map[string]string{".env": "PORT=1\nAPI_KEY=" + secret + "\n" + secret + secret + " ?\n"}, want: ".env: line 3 cannot be read; write NAME=value"},
		"no such file":       {args: []string{"--config=nowhere.yaml"}, want: "nowhere.yaml: no such file or directory; give the path of a YAML file"},
		"file by variable":   {env: []string{"BELFRY_CONFIG=nowhere.yaml"}, want: "nowhere.yaml: no such file or directory"},
		"no YAML":            {files: map[string]string{"belfry.yaml": "api:\n  key: \"" + secret + "\n"}, want: "belfry.yaml: is no YAML mapping: line "},
		"YAML list":          {files: map[string]string{"belfry.yaml": "- " + secret + "\n"}, want: "belfry.yaml: is no YAML mapping: "},
		"unknown key":        {files: map[string]string{"belfry.yaml": "timers:\n  max_delay: 5s\n"}, want: "belfry.yaml: timers.max_delay: is no setting; `belfry config` lists them"},
		"value for a group":  {files: map[string]string{"belfry.yaml": "timers: 5s\n"}, want: "belfry.yaml: timers: is no setting"},
		"nested value":       {files: map[string]string{"belfry.yaml": "queues:\n  mail: [1]\n"}, want: "belfry.yaml: queues: is nested too deeply"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, out, log := run(t, write(t, tt.files), tt.env, append([]string{"serve"}, tt.args...)...)
			lines := strings.Split(strings.TrimSpace(log), "\n")
			last := lines[len(lines)-1]
			if code != exitUsage || !strings.Contains(last, "belfry: ") || !strings.Contains(last, tt.want) {
				t.Errorf("exit code %d, %q; want %q", code, last, tt.want)
			}
			if out != "" {
				t.Errorf("printed %q", out)
			}
			if strings.Contains(log, secret) {
				t.Errorf("a secret is told: %s", log)
			}
			for _, line := range lines[:len(lines)-1] {
				if !strings.HasPrefix(line, "{") { // what was logged before
					t.Errorf("more than one line: %s", log)
				}
			}
		})
	}
}

// setting is one line of belfry config.
type setting struct {
	Variables []string
	Flag      string
	Key       string
	Value     string
	From      string
	Default   string
}

// settings returns what belfry config tells.
func settings(t *testing.T, dir string, env []string, args ...string) []setting {
	t.Helper()
	code, out, log := run(t, dir, env, append([]string{"config"}, args...)...)
	if code != exitOK {
		t.Fatalf("exit code %d: %s", code, log)
	}
	return decode[[]setting](t, out)
}

// named returns the setting that has a variable.
func named(t *testing.T, all []setting, variable string) setting {
	t.Helper()
	for _, s := range all {
		if slices.Contains(s.Variables, variable) {
			return s
		}
	}
	t.Fatalf("no setting has the variable %s", variable)
	return setting{}
}

func TestFlagBeatsEnvironmentBeatsDotEnvBeatsFileBeatsDefault(t *testing.T) {
	t.Parallel()
	files := map[string]string{"belfry.yaml": "lease: 4s\n", ".env": "BELFRY_LEASE=3s\n"}
	steps := []struct {
		files []string
		env   []string
		args  []string
		value string
		from  string
	}{
		{nil, nil, nil, "30s", "default"},
		{[]string{"belfry.yaml"}, nil, nil, "4s", "file"},
		{[]string{"belfry.yaml", ".env"}, nil, nil, "3s", ".env"},
		{[]string{"belfry.yaml", ".env"}, []string{"BELFRY_LEASE=2s"}, nil, "2s", "environment"},
		{[]string{"belfry.yaml", ".env"}, []string{"BELFRY_LEASE=2s"}, []string{"--lease=1s"}, "1s", "flag"},
		{[]string{"belfry.yaml", ".env"}, []string{"BELFRY_LEASE="}, nil, "3s", ".env"}, // set to nothing is not set
	}
	for _, step := range steps {
		present := map[string]string{}
		for _, name := range step.files {
			present[name] = files[name]
		}
		got := named(t, settings(t, write(t, present), step.env, step.args...), "BELFRY_LEASE")
		if got.Value != step.value || got.From != step.from {
			t.Errorf("%+v: %s from %s", step, got.Value, got.From)
		}
	}
}

func TestOfSeveralVariablesTheFirstNameCounts(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{".env": "BELFRY_LOG_LEVEL=warn\nBELFRY_NATS_URL=nats://a\n"})
	all := settings(t, dir, []string{"RUST_LOG=debug", "NATS_URL=nats://b"})
	if got := named(t, all, "RUST_LOG"); got.Value != "warn" || got.From != ".env" {
		t.Errorf("%+v", got)
	}
	if got := named(t, all, "NATS_URL"); got.Value != "nats://a" {
		t.Errorf("%+v", got)
	}
}

// The store has an order of its own: the flag, BELFRY_STORE, DATABASE_URL, PG_*, belfry.db.
func TestTheStoreIsFoundInItsOrder(t *testing.T) {
	t.Parallel()
	pg := []string{"PG_HOST=127.0.0.1", "PG_PORT=1", "PG_USER=u", "PG_PASSWORD=pw", "PG_DB_NAME=d"}
	for _, tt := range []struct {
		env  []string
		args []string
		code int
		want string
	}{
		{append(pg, "DATABASE_URL=mysql://x", "BELFRY_STORE=redis+sentinel://x"), []string{"--store=mongodb://x"}, exitUsage, "--store: "},
		{append(pg, "DATABASE_URL=mysql://x", "BELFRY_STORE=redis+sentinel://x"), nil, exitUsage, "BELFRY_STORE: "},
		{append(pg, "DATABASE_URL=mysql://x"), nil, exitUsage, "DATABASE_URL: "},
		{pg, nil, exitFailure, `PG_HOST: "postgres://u:***@127.0.0.1:1/d": open PostgreSQL: it cannot be reached: `},
	} {
		code, _, log := run(t, t.TempDir(), append(tt.env, "API_KEY="+apiKey), append([]string{"serve"}, tt.args...)...)
		if code != tt.code || !strings.Contains(log, "belfry: "+tt.want) {
			t.Errorf("%v %v: %d %s, want %s", tt.env, tt.args, code, log, tt.want)
		}
	}
	dir := t.TempDir()
	if code, _, log := run(t, dir, []string{"PG_PORT=5433"}, "schedule", "--http=https://example.com"); code != exitOK {
		t.Fatalf("%d %s", code, log)
	}
	if _, err := os.Stat(filepath.Join(dir, "belfry.db")); err != nil {
		t.Error(err)
	}
}

func TestConfigShowsNoSecret(t *testing.T) {
	t.Parallel()
	canary := strings.Repeat("c4n4ry", 10)
	env := []string{
		"API_KEY=" + canary, "BELFRY_API_KEYS=ops:" + canary, "PG_PASSWORD=" + canary, "NATS_PASSWORD=" + canary,
		"BELFRY_WEBHOOK_SECRETS=" + canary, "OTEL_EXPORTER_OTLP_HEADERS=a=" + canary,
		"DATABASE_URL=postgres://u:" + canary + "@h/d", "NATS_URL=u:" + canary + "@h:4222", "BELFRY_STORE=redis://:" + canary + "@h?x=" + canary,
	}
	for _, terminal := range []bool{false, true} {
		p := newProgram(t, t.TempDir(), env, "config")
		p.main.Terminal = terminal
		if code := p.run(); code != exitOK {
			t.Fatalf("%d %s", code, p.log)
		}
		if strings.Contains(p.out.String(), canary) {
			t.Errorf("a secret is shown:\n%s", p.out)
		}
		if !strings.Contains(p.out.String(), "***") || !strings.Contains(p.out.String(), "ops:***") {
			t.Errorf("that there are secrets is not shown:\n%s", p.out)
		}
	}
}

func TestMisspelledVariablesAreLogged(t *testing.T) {
	t.Parallel()
	p := serve(t, t.TempDir(), []string{"BELFRY_EGRES_ALLOW=10.0.0.0/8", "BELFRY_PORT=tcp://10.0.0.1:80"}, "--store=memory:", "--addr=127.0.0.1")
	if log := p.log.String(); !strings.Contains(log, `"variable":"BELFRY_EGRES_ALLOW"`) || strings.Contains(log, "BELFRY_PORT") {
		t.Errorf("%s", log)
	}
}

// One name leads to the others: flag, variable and key of a setting differ in their spelling only.
func TestSettingsAreCalledAlikeEverywhere(t *testing.T) {
	t.Parallel()
	known := []string{"PORT", "API_KEY", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_HEADERS", "OTEL_SERVICE_NAME"} // names from elsewhere
	seen := map[string]bool{}
	for _, s := range settings(t, t.TempDir(), nil) {
		for _, name := range append(s.Variables, s.Flag, s.Key) {
			if seen[name] && name != "" {
				t.Errorf("two settings are called %s", name)
			}
			seen[name] = true
		}
		like := strings.NewReplacer(".", "-", "_", "-").Replace(s.Key)
		if s.Flag != "" && s.Key != "" && s.Flag != "--"+like {
			t.Errorf("the flag %s has the key %s", s.Flag, s.Key)
		}
		if variable := "BELFRY_" + strings.ToUpper(strings.ReplaceAll(like, "-", "_")); s.Key != "" && s.Variables[0] != variable && !slices.Contains(known, s.Variables[0]) {
			t.Errorf("the key %s has the variable %s, not %s", s.Key, s.Variables[0], variable)
		}
	}
}
