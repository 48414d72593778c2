package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
)

// terminal runs a command as if its output were a terminal.
func terminal(t *testing.T, dir string, env []string, args ...string) (code int, out, log string) {
	t.Helper()
	p := newProgram(t, dir, env, args...)
	p.main.Terminal = true
	code = p.run()
	return code, p.out.String(), p.log.String()
}

func TestPeopleReadTables(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	code, out, log := terminal(t, dir, nil, "schedule", "--in=1h", "--http=https://example.com", "-d", `{"a":1}`, "--id=one", "--group=g")
	if code != exitOK || !strings.Contains(out, "State       scheduled") || !strings.Contains(out, "Goes to     http https://example.com") {
		t.Errorf("%d %s%s", code, out, log)
	}
	code, out, log = terminal(t, dir, nil, "schedule", "--in=1h", "--kind=k", "--id=two")
	if code != exitOK {
		t.Fatalf("%d %s%s", code, out, log)
	}
	for want, args := range map[string][]string{
		"QUEUE    ID ":       {"list"},
		"No messages.":       {"list", "--queue=none"},
		"1 of 2; for more: ": {"list", "--limit=1"},
		"VERSION  STEP":      {"migrate", "status"},
		"up to date":         {"migrate", "up"},
		"store       ok ":    {"doctor"},
		"VARIABLE ":          {"config"},
		"State       sched":  {"get", "default", "one"},
		`"state":"canceled"`: {"cancel", "default", "two", "--json"},
	} {
		if code, out, log := terminal(t, dir, []string{"API_KEY=" + apiKey}, args...); code != exitOK || !strings.Contains(out, want) {
			t.Errorf("%v: %d %s%s; want %q", args, code, out, log, want)
		}
	}
}

// What a message contains comes from anywhere; on a terminal it must not move the cursor, change a title or hide a line.
func TestATerminalIsNotMovedByWhatMessagesContain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	hostile := "a\x1b]0;title\x07\x1b[2Jb\nc\u202ed\u009b31m"
	if code, _, log := run(t, dir, nil, "schedule", "--in=1h", "--kind="+hostile, "--group="+hostile, "-d", hostile, "--id=one"); code != exitOK {
		t.Fatal(log)
	}
	for _, args := range [][]string{{"list"}, {"get", "default", "one"}} {
		_, out, _ := terminal(t, dir, nil, args...)
		if strings.ContainsAny(out, "\x1b\x07\u202e\u009b") || !strings.Contains(out, "a·]0;title··[2Jb·c") {
			t.Errorf("%v: %q", args, out)
		}
	}
}

func TestWatchPrintsALineForEachChange(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	serve(t, dir, nil, "--addr=127.0.0.1")
	schedule := func(id string) {
		if code, _, log := run(t, dir, nil, "schedule", "--in=1h", "--kind=k", "--id="+id); code != exitOK {
			t.Fatal(log)
		}
	}
	schedule("before")
	w := newProgram(t, dir, nil, "watch", "--interval=10ms", "--queue=default")
	w.main.Terminal = true
	w.start()
	w.out.find(t, `scheduled  default (before)\n`)
	schedule("after")
	w.out.find(t, `scheduled  default (after)\n`)
	if code, _, log := run(t, dir, nil, "cancel", "default", "before"); code != exitOK {
		t.Fatal(log)
	}
	w.out.find(t, `canceled   default (before)\n`)
	w.signals <- syscall.SIGINT
	if code := w.wait(); code != exitOK {
		t.Errorf("exit code %d: %s", code, w.log)
	}
	if n := strings.Count(w.out.String(), "\n"); n != 3 {
		t.Errorf("%d lines:\n%s", n, w.out)
	}
}

func TestCommandsAskTheServerTheyAreTold(t *testing.T) {
	t.Parallel()
	dir := t.TempDir() // without a store
	p := serve(t, t.TempDir(), nil, "--store=memory:", "--addr=127.0.0.1")
	told := []string{"BELFRY_SERVER=" + p.url() + "/", "API_KEY=" + apiKey}
	if code, out, log := run(t, dir, told, "schedule", "--in=1h", "--kind=k", "--id=one"); code != exitOK || !strings.Contains(out, `"id":"one"`) {
		t.Errorf("%d %s%s", code, out, log)
	}
	if code, out, log := run(t, dir, nil, "list", "--server="+p.url(), "--key="+apiKey); code != exitOK || !strings.Contains(out, `"total":1`) {
		t.Errorf("%d %s%s", code, out, log)
	}
	if code, _, log := run(t, dir, nil, "list", "--server="+p.url()); code != exitUsage || !strings.Contains(log, "--key: not set; set BELFRY_KEY or API_KEY") {
		t.Errorf("%d %s", code, log)
	}
	if code, _, log := run(t, dir, []string{"BELFRY_KEY=wrong"}, "list", "--server="+p.url()); code != exitFailure || !strings.Contains(log, "does not know this API key") {
		t.Errorf("%d %s", code, log)
	}
	if code, _, log := run(t, dir, nil, "schedule", "--nats=a.b", "--server="+p.url(), "--key="+apiKey); code != exitFailure || !strings.Contains(log, "nats") {
		t.Errorf("a target that the server does not have: %d %s", code, log)
	}
	if code, out, log := run(t, dir, nil, "healthcheck", "--server="+p.url()); code != exitOK || out != "ready\n" {
		t.Errorf("%d %s%s", code, out, log)
	}
}

func TestAKeyGoesToTheServerItIsForAlone(t *testing.T) {
	t.Parallel()
	stranger := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("a stranger was asked for %s with the key %q", r.URL, r.Header.Get("X-API-Key"))
	}))
	defer stranger.Close()
	moved := httptest.NewServer(http.RedirectHandler(stranger.URL, http.StatusTemporaryRedirect))
	defer moved.Close()
	server := strings.Replace(moved.URL, "http://", "http://user:canary@", 1)
	code, out, log := run(t, t.TempDir(), nil, "list", "--server="+server, "--key="+apiKey)
	if code != exitFailure || !strings.Contains(log, "answered 307") || strings.Contains(log, "canary") {
		t.Errorf("%d %s%s", code, out, log)
	}
}

func TestHealthcheckFailsWhileTheServerDrains(t *testing.T) {
	t.Parallel()
	p := serve(t, t.TempDir(), nil, "--store=memory:", "--addr=127.0.0.1", "--drain-delay=1h")
	p.signals <- syscall.SIGTERM
	eventually(t, func() (string, bool) {
		code, _, log := run(t, t.TempDir(), nil, "healthcheck", "--server="+p.url())
		return log, code == exitFailure && strings.Contains(log, "is not ready: shutting down")
	})
	p.signals <- syscall.SIGTERM
	p.wait()
}

func TestCommandsReachAServerThatListensEverywhere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := serve(t, dir, nil)
	if !strings.HasPrefix(p.url(), "http://127.0.0.1:") {
		t.Errorf("the URL for this machine is %s", p.url())
	}
	if code, out, log := run(t, dir, nil, "list"); code != exitOK || !strings.Contains(out, `"total":0`) {
		t.Errorf("%d %s%s", code, out, log)
	}
	if a := call(t, http.MethodGet, p.url()+"/api/v1/messages", "", "X-API-Key", "x"); a.status != http.StatusUnauthorized {
		t.Errorf("%d", a.status)
	}
}
