package web

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// logged returns a logger and what it wrote.
func logged() (*slog.Logger, *bytes.Buffer) {
	var text bytes.Buffer
	return slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelDebug})), &text
}

func TestARequestIDIsTakenOverOnlyIfItIsHarmless(t *testing.T) {
	logger, _ := logged()
	var seen string
	h := Wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = RequestID(r.Context()) }), logger)
	for given, kept := range map[string]bool{
		"":                       false,
		"order-7_a.B":            true,
		"a b":                    false,
		"a\"b":                   false,
		"é":                      false,
		strings.Repeat("x", 128): true,
		strings.Repeat("x", 129): false,
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set(RequestIDHeader, given)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if got := w.Header().Get(RequestIDHeader); got != seen || (got == given) != kept || len(got) < 11 {
			t.Errorf("given %q: answered %q, handler saw %q", given, got, seen)
		}
	}
}

func TestAPanicIsAnsweredWith500AndLogged(t *testing.T) {
	logger, text := logged()
	server := httptest.NewServer(Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/late" {
			_, _ = io.WriteString(w, strings.Repeat("x", 1<<20))
		}
		panic(errors.New("the reason"))
	}), logger))
	resp, err := http.Get(server.URL + "/early?token=secret")
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if resp.StatusCode != http.StatusInternalServerError || !strings.Contains(string(body), `"code":1`) || strings.Contains(string(body), "the reason") {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	resp, err = http.Get(server.URL + "/late")
	if err == nil {
		_, err = io.ReadAll(resp.Body)
		resp.Body.Close()
	}
	if err == nil {
		t.Error("an answer that had begun looks complete")
	}
	server.Close() // waits for the handlers, and with them for the log
	if log := text.String(); strings.Count(log, "a handler panicked") != 2 || !strings.Contains(log, "the reason") || strings.Contains(log, "secret") {
		t.Errorf("%s", log)
	}
}

func TestTheAccessLogHasThePathAndNoQuery(t *testing.T) {
	logger, text := logged()
	h := Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, "short")
	}), logger)
	r := httptest.NewRequest(http.MethodPut, "/a/b?token=secret", nil)
	r.Header.Set("X-API-Key", "secret")
	h.ServeHTTP(httptest.NewRecorder(), r)
	for _, want := range []string{"level=DEBUG", "method=PUT", "path=/a/b", "status=418", "bytes=5"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
	if strings.Contains(text.String(), "secret") {
		t.Errorf("%s", text)
	}
}
