package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestTheFirstMinuteNeedsNothing(t *testing.T) {
	dir := t.TempDir()
	s := launch(t, dir, freePort(t), []string{"serve", "--dev"}, "API_KEY=", "BELFRY_EGRESS_ALLOW=", "BELFRY_TIMERS_MIN_DELAY=", "BELFRY_ADDR=", "BELFRY_LEASE=")
	s.awaitReady()
	command := regexp.MustCompile(`(?ms)^\s*(curl .*?[^\\])$`).FindString(s.log.String())
	if command == "" {
		t.Fatalf("no curl command was printed:\n%s", s.log)
	}
	run := exec.Command("bash", "-c", command)
	out, err := run.CombinedOutput()
	if err != nil || !strings.Contains(string(out), `"code":0`) {
		t.Fatalf("the printed command failed: %v\n%s\n%s", err, command, out)
	}
	sink := regexp.MustCompile(`http://[^ "'\\]*/_sink/[^ "'\\]*`).FindString(command)
	deadline := time.Now().Add(10 * time.Second)
	for {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, sink, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", "application/json")
		res, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		var shown struct{ Requests []json.RawMessage }
		err = json.NewDecoder(res.Body).Decode(&shown)
		res.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if len(shown.Requests) == 1 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("nothing arrived at %s:\n%s", sink, s.log)
		}
		time.Sleep(20 * time.Millisecond) // polls what another process does
	}
}

func TestASecondServerOnTheFileIsRefused(t *testing.T) {
	dir := t.TempDir()
	first := serve(t, dir)
	second := launch(t, dir, freePort(t), []string{"serve"})
	<-second.done
	if code := second.cmd.ProcessState.ExitCode(); code == 0 || !strings.Contains(second.log.String(), "belfry.db") {
		t.Errorf("the second server ended with code %d: %s", code, second.log)
	}
	first.must(http.StatusOK, "GET", "/healthz", "")
}

func TestMetricsTellWhatHappened(t *testing.T) {
	s, r := serve(t, t.TempDir()), newReceiver(t)
	for range 3 {
		s.must(http.StatusCreated, "POST", "/timers", `{"delay":"0s","callback":{"type":"http","url":"`+r.URL+`"}}`)
	}
	deadline := time.Now().Add(10 * time.Second)
	for {
		res, err := client.Get(s.url + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if regexp.MustCompile(`(?m)^belfry_attempts_total\{.*result="delivered".*\} 3$`).Match(text) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("three deliveries are not in the metrics:\n%s", text)
		}
		time.Sleep(20 * time.Millisecond) // polls what another process does
	}
}

func TestTheCommandLineWorksWithAndWithoutAServer(t *testing.T) {
	dir := t.TempDir()
	belfry := func(args ...string) (string, error) {
		c := exec.Command(binary, args...)
		c.Dir = dir
		c.Env = []string{"HOME=" + dir}
		out, err := c.CombinedOutput()
		return string(out), err
	}
	schedule := []string{"schedule", "--in", "1h", "--http", "http://example.com/x", "-d", `{"a":1}`, "--json"}
	for _, running := range []bool{false, true} {
		if running {
			serve(t, dir)
		}
		out, err := belfry(schedule...)
		if err != nil {
			t.Fatalf("schedule (server running: %v): %v\n%s", running, err, out)
		}
		var m struct{ ID, Queue, State string }
		if err := json.Unmarshal([]byte(out), &m); err != nil || m.State != "scheduled" {
			t.Fatalf("schedule said %s", out)
		}
		if out, err := belfry("list", "--json"); err != nil || !strings.Contains(out, m.ID) {
			t.Errorf("list: %v\n%s", err, out)
		}
		if out, err := belfry("get", m.Queue, m.ID, "--json"); err != nil || !strings.Contains(out, m.ID) {
			t.Errorf("get: %v\n%s", err, out)
		}
		if out, err := belfry("cancel", m.Queue, m.ID, "--json"); err != nil || !strings.Contains(out, "canceled") {
			t.Errorf("cancel: %v\n%s", err, out)
		}
	}
}
