package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience bounds every wait of a test; nothing is expected to take long.
const patience = 30 * time.Second

// apiKey is a key that servers accept.
var apiKey = strings.Repeat("k", 40)

// stream collects what the program writes and lets a test wait for it.
type stream struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{} // closed with each write
}

func newStream() *stream { return &stream{more: make(chan struct{})} }

func (s *stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.Write(p)
	close(s.more)
	s.more = make(chan struct{})
	return len(p), nil
}

func (s *stream) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// find waits until the pattern is found and returns its first group.
func (s *stream) find(t *testing.T, pattern string) string {
	t.Helper()
	expression := regexp.MustCompile(pattern)
	timeout := time.After(patience)
	for {
		s.mu.Lock()
		found, more := expression.FindStringSubmatch(s.text.String()), s.more
		s.mu.Unlock()
		if found != nil {
			return found[len(found)-1]
		}
		select {
		case <-more:
		case <-timeout:
			t.Fatalf("did not find %q in:\n%s", pattern, s)
		}
	}
}

// program is a run of the program inside the test.
type program struct {
	t       *testing.T
	main    *Main
	out     *stream
	log     *stream
	signals chan os.Signal
	ended   chan int
}

// newProgram makes a run in a folder with an environment.
func newProgram(t *testing.T, dir string, env []string, args ...string) *program {
	t.Helper()
	p := &program{t: t, out: newStream(), log: newStream(), signals: make(chan os.Signal, 2), ended: make(chan int, 1)}
	p.main = &Main{
		Args: args, Environ: env, Dir: dir,
		Stdin: strings.NewReader(""), Stdout: p.out, Stderr: p.log, Signals: p.signals,
	}
	return p
}

// run runs the program to its end.
func (p *program) run() int { return p.main.Run(p.t.Context()) }

// run runs the program to its end in one call.
func run(t *testing.T, dir string, env []string, args ...string) (code int, out, log string) {
	t.Helper()
	p := newProgram(t, dir, env, args...)
	code = p.run()
	return code, p.out.String(), p.log.String()
}

// serve starts a server on a free port; it is stopped at the end of the test.
func serve(t *testing.T, dir string, env []string, args ...string) *program {
	t.Helper()
	p := newProgram(t, dir, append([]string{"API_KEY=" + apiKey}, env...), append([]string{"serve", "--port=0"}, args...)...)
	p.start()
	p.url()
	return p
}

// start runs the program beside the test.
func (p *program) start() {
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		p.ended <- p.run()
	}()
	p.t.Cleanup(func() {
		select {
		case p.signals <- syscall.SIGTERM:
		default:
		}
		select {
		case <-stopped:
		case <-time.After(patience):
			p.t.Errorf("the program does not end:\n%s", p.log)
		}
	})
}

// url waits until the server listens and returns where.
func (p *program) url() string {
	p.t.Helper()
	return p.log.find(p.t, `"msg":"listening","url":"([^"]*)"`)
}

// wait returns the exit code.
func (p *program) wait() int {
	p.t.Helper()
	select {
	case code := <-p.ended:
		return code
	case <-time.After(patience):
		p.t.Fatalf("the program does not end:\n%s", p.log)
		return -1
	}
}

// answer is what a server answered.
type answer struct {
	status int
	header http.Header
	body   string
}

// call makes a request with the API key.
func call(t *testing.T, method, url, body string, headers ...string) answer {
	t.Helper()
	a, err := tryCall(t, method, url, body, headers...)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func tryCall(t *testing.T, method, url, body string, headers ...string) (answer, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-API-Key", apiKey)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	client := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, string(text)}, err
}

// eventually asks again until the answer is as wanted. What it waits for happens in the server, which has no other way to
// tell.
func eventually(t *testing.T, ask func() (string, bool)) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		last, ok := ask()
		if ok {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("it did not come about; last: %s", last)
		}
	}
}

// decode reads JSON.
func decode[T any](t *testing.T, text string) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	return v
}
