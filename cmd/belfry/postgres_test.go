package main

import (
	"strings"
	"testing"

	"github.com/belfryhq/belfry/internal/testserver"
)

// stopping stops the servers that tests have started when the last test is done.
type stopping struct{ m interface{ Run() int } }

// Run runs the tests.
func (s stopping) Run() int {
	defer testserver.StopAll()
	return s.m.Run()
}

// TestCommandsWorkOnPostgreSQL runs them on an empty database, in the order in which operators do.
func TestCommandsWorkOnPostgreSQL(t *testing.T) {
	t.Parallel()
	dir, address := t.TempDir(), testserver.Postgres(t)+"&schema=mine&prefix=b_"
	env := []string{"API_KEY=" + apiKey, "BELFRY_STORE=" + address}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"migrate", "status"}, `[{"version":1,"name":"messages"}`},
		{[]string{"migrate", "dump"}, "CREATE TABLE mine.b_messages"},
		{[]string{"migrate", "up"}, `"version":1,"name":"messages","applied_at":`},
		{[]string{"migrate", "up"}, `[]`},
		{[]string{"schedule", "--in=1h", "--kind=k", "--id=one"}, `"id":"one"`},
		{[]string{"get", "default", "one"}, `"state":"scheduled"`},
		{[]string{"cancel", "default", "one"}, `"state":"canceled"`},
		{[]string{"list"}, `"one"`},
		{[]string{"doctor"}, `"detail": "postgresql 1`},
		{[]string{"doctor"}, "prefix=b_, schema=mine, synchronous_commit=on"},
		{[]string{"doctor"}, "the store's differs from this machine's by"},
		{[]string{"migrate", "down", "--yes"}, `"version":1`},
		{[]string{"migrate", "status"}, `"version":1`},
	} {
		code, out, log := run(t, dir, env, c.args...)
		if code != exitOK || !strings.Contains(out, c.want) {
			t.Errorf("%v ended with %d: %s%s; want %q", c.args, code, out, log, c.want)
		}
	}
}

// TestServersShareADatabase accepts on one server and has another one tell of it.
func TestServersShareADatabase(t *testing.T) {
	t.Parallel()
	env := []string{"API_KEY=" + apiKey, "BELFRY_STORE=" + testserver.Postgres(t)}
	one, other := serve(t, t.TempDir(), env), serve(t, t.TempDir(), env)
	if code, _, log := run(t, t.TempDir(), append(env, "BELFRY_SERVER="+one.url()), "schedule", "--in=1h", "--kind=k", "--id=shared"); code != exitOK {
		t.Fatal(log)
	}
	code, out, log := run(t, t.TempDir(), append(env, "BELFRY_SERVER="+other.url()), "get", "default", "shared")
	if code != exitOK || !strings.Contains(out, `"state":"scheduled"`) {
		t.Errorf("%d %s%s", code, out, log)
	}
}
