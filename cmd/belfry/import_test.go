package main

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/belfryhq/belfry/internal/testserver"
)

// foreignTable is the table of the platform that timers come from, with some in it: the second pending one is long overdue,
// and the last one could never be delivered.
const foreignTable = `
CREATE TABLE timers (id uuid PRIMARY KEY, created_at timestamptz NOT NULL, updated_at timestamptz NOT NULL, execute_at timestamptz NOT NULL,
	callback_type text NOT NULL, callback_config jsonb NOT NULL, status text NOT NULL, last_error text, executed_at timestamptz, metadata jsonb);
INSERT INTO timers VALUES
	('00000000-0000-7000-8000-000000000001', now() - interval '1 day', now(), now() + interval '1 hour', 'http',
		'{"type":"http","url":"http://example.com/a","payload":{"n":1}}', 'pending', NULL, NULL, '{"ref":"x"}'),
	('00000000-0000-7000-8000-000000000002', now() - interval '1 day', now(), now() - interval '2 hours', 'nats',
		'{"type":"nats","topic":"a.b"}', 'executing', NULL, NULL, NULL),
	('00000000-0000-7000-8000-000000000003', now() - interval '1 day', now(), now() - interval '2 hours', 'http',
		'{"type":"http","url":"http://example.com/b"}', 'failed', 'HTTP 500', now() - interval '2 hours', NULL),
	('00000000-0000-7000-8000-000000000004', now() - interval '1 day', now(), now() + interval '2 hours', 'http',
		'{"type":"http","url":"ftp://example.com/c"}', 'pending', NULL, NULL, NULL);`

func TestImportsTimersFromAnotherPlatform(t *testing.T) {
	t.Parallel()
	from := testserver.Postgres(t)
	conn, err := pgx.Connect(t.Context(), from)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), foreignTable); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	imports := func(wantCode int, args ...string) (got imported, log string) {
		t.Helper()
		code, out, log := run(t, dir, nil, append([]string{"import", "timers", "--from", from}, args...)...)
		if code != wantCode {
			t.Fatalf("%v: exit code %d: %s", args, code, log)
		}
		if out != "" {
			if err := json.Unmarshal([]byte(out), &got); err != nil {
				t.Fatalf("%v: %v in %q", args, err, out)
			}
		}
		return got, log
	}
	dry, _ := imports(exitFailure, "--dry-run")
	if dry.Read != 4 || dry.Overdue != 1 || len(dry.Refused) != 1 || !strings.Contains(dry.Refused[0].Error, "give http or https") {
		t.Errorf("the dry run says %+v", dry)
	}
	if _, log := imports(exitUsage); !strings.Contains(log, "1 pending timers are overdue by more than 5m0s") {
		t.Errorf("without a word on overdue timers: %s", log)
	}
	first, _ := imports(exitFailure, "--overdue=keep-window=1h")
	if want := map[string]int{"pending": 1, "failed": 2}; !maps.Equal(first.Imported, want) || first.Failed != 1 {
		t.Errorf("imported %+v", first)
	}
	again, _ := imports(exitFailure, "--overdue=fire")
	if again.Present != 3 || len(again.Imported) != 0 {
		t.Errorf("a second import did %+v", again)
	}
	code, out, log := run(t, dir, nil, "get", "timers", "00000000-0000-7000-8000-000000000002")
	if code != exitOK || !strings.Contains(out, `"state":"dead"`) || !strings.Contains(out, "overdue by 2h0m") {
		t.Errorf("the overdue timer became %s%s", out, log)
	}
}
