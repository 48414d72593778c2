// Package e2e starts the real program and treats it as users, networks and operators do.
package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/belfryhq/belfry/internal/testserver"
)

// binary is the program, built once.
var binary string

// full says that the tests run at full scale, not at that of every change.
var full = os.Getenv("BELFRY_E2E") != ""

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "belfry-e2e")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	defer testserver.StopAll()
	binary = filepath.Join(dir, "belfry")
	build := exec.Command("go", "build", "-o", binary, "github.com/belfryhq/belfry/cmd/belfry")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the program: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

const key = "0123456789abcdef0123456789abcdef"

// server is one run of `belfry serve`.
type server struct {
	t    *testing.T
	url  string
	cmd  *exec.Cmd
	log  *buffer
	done chan struct{} // closed when it has ended
}

// buffer collects output of a process.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// freePort returns a port that nobody listens on.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// launch starts the program in a folder without waiting for it.
func launch(t *testing.T, dir, port string, args []string, env ...string) *server {
	t.Helper()
	s := &server{t: t, url: "http://127.0.0.1:" + port, log: &buffer{}, done: make(chan struct{})}
	s.cmd = exec.Command(binary, args...)
	s.cmd.Dir = dir
	s.cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "PORT=" + port, "API_KEY=" + key, "BELFRY_ADDR=127.0.0.1",
		"BELFRY_EGRESS_ALLOW=127.0.0.0/8", "BELFRY_TIMERS_MIN_DELAY=0s", "BELFRY_LEASE=2s",
	}, env...)
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = s.cmd.Wait()
		close(s.done)
	}()
	t.Cleanup(func() { s.kill() })
	return s
}

// serve starts a server on the database in a folder and waits until it is ready.
func serve(t *testing.T, dir string, env ...string) *server {
	t.Helper()
	s := launch(t, dir, freePort(t), []string{"serve"}, env...)
	s.awaitReady()
	return s
}

// awaitReady waits until /readyz says yes.
func (s *server) awaitReady() {
	s.t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		if res, err := http.Get(s.url + "/readyz"); err == nil {
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return
			}
		}
		select {
		case <-s.done:
			s.t.Fatalf("the server ended:\n%s", s.log)
		case <-time.After(10 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("the server is not ready:\n%s", s.log)
		}
	}
}

// kill ends the server as a power cut would, and waits for its end.
func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	<-s.done
}

// terminate asks the server to stop, waits for its end and returns its exit code.
func (s *server) terminate() int {
	s.t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		s.t.Fatal(err)
	}
	select {
	case <-s.done:
		return s.cmd.ProcessState.ExitCode()
	case <-time.After(40 * time.Second):
		s.t.Fatalf("the server does not stop:\n%s", s.log)
		return -1
	}
}

// client has no more idle connections than a busy producer.
var client = &http.Client{Timeout: 15 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}

// reply is an answer of the timers API.
type reply struct {
	status int
	text   string
	Data   map[string]any `json:"data"`
}

// call makes a request; a connection that breaks is an error.
func (s *server) call(ctx context.Context, method, path, body string) (reply, error) {
	r, err := http.NewRequestWithContext(ctx, method, s.url+path, strings.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	r.Header.Set("X-API-Key", key)
	r.Header.Set("Content-Type", "application/json")
	res, err := client.Do(r)
	if err != nil {
		return reply{}, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return reply{}, err
	}
	a := reply{status: res.StatusCode, text: string(text)}
	if err := json.Unmarshal(text, &a); err != nil {
		return a, fmt.Errorf("%s %s answered %d %s: %w", method, path, res.StatusCode, text, err)
	}
	return a, nil
}

// must makes a request that must be answered with a status.
func (s *server) must(status int, method, path, body string) reply {
	s.t.Helper()
	a, err := s.call(s.t.Context(), method, path, body)
	if err != nil || a.status != status {
		s.t.Fatalf("%s %s: %v %d %s\n%s", method, path, err, a.status, a.text, s.log)
	}
	return a
}

// receiver is an endpoint that notes every request by the last part of its path.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	came   map[string][]time.Time
	bodies map[string]string
	slow   time.Duration
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{came: map[string][]time.Time{}, bodies: map[string]string{}}
	r.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		at := time.Now()
		name := filepath.Base(q.URL.Path)
		body, _ := io.ReadAll(q.Body)
		r.mu.Lock()
		r.came[name] = append(r.came[name], at)
		r.bodies[name] = string(body)
		slow := r.slow
		r.mu.Unlock()
		time.Sleep(slow) // what a real endpoint takes
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) distinct() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.came)
}

func (r *receiver) times(name string) []time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]time.Time(nil), r.came[name]...)
}

// await waits until as many different requests have come.
func (r *receiver) await(t *testing.T, n int, most time.Duration) {
	t.Helper()
	deadline := time.Now().Add(most)
	for r.distinct() < n {
		if time.Now().After(deadline) {
			t.Fatalf("INCOMPLETE: %d of %d timers have come after %v", r.distinct(), n, most)
		}
		time.Sleep(20 * time.Millisecond) // polls what another process does
	}
}

// timer is the body that creates a timer for a receiver.
func (r *receiver) timer(name string, at time.Time) string {
	return fmt.Sprintf(`{"execute_at":%q,"idempotency_key":%q,"callback":{"type":"http","url":"%s/hook/%s","payload":{"n":%q}}}`,
		at.UTC().Format(time.RFC3339Nano), name, r.URL, name, name)
}

// accept creates a timer however often the server breaks, on whichever server is there.
func accept(ctx context.Context, current func() *server, body string) error {
	for ctx.Err() == nil {
		a, err := current().call(ctx, http.MethodPost, "/timers", body)
		switch {
		case err == nil && (a.status == http.StatusCreated || a.status == http.StatusOK):
			return nil
		case err == nil && a.status != http.StatusServiceUnavailable:
			return fmt.Errorf("%d %s", a.status, a.text)
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
	return errors.New("the timer was not accepted in time")
}
