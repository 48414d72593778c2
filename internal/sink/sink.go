// Package sink is the request sink of `belfry serve --dev`: an endpoint that accepts every request and shows what arrived.
package sink

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

const (
	maxNames    = 1000
	maxRequests = 100
	maxBody     = 64 << 10
)

// Request is one that arrived.
type Request struct {
	At      time.Time           `json:"at"`
	Method  string              `json:"method"`
	Headers map[string][]string `json:"headers"`
	Body    string              `json:"body,omitempty"`
	Base64  []byte              `json:"body_base64,omitempty"` // where the body is not text
}

// Sink records requests by the name in their path, /_sink/<name>: GET shows the last hundred, every other method records. The
// zero value is ready. It is for development: it asks for no key.
type Sink struct {
	mu       sync.Mutex
	requests map[string][]Request
}

// ServeHTTP records or shows.
func (s *Sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, "/_sink/")
	if name == "" || len(name) > 255 {
		http.Error(w, "name the sink: /_sink/<name>", http.StatusNotFound)
		return
	}
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		s.show(w, r, name)
		return
	}
	s.record(w, r, name)
}

func (s *Sink) record(w http.ResponseWriter, r *http.Request, name string) {
	at := time.Now()
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		http.Error(w, "the body could not be read", http.StatusBadRequest)
		return
	}
	got := Request{At: at.UTC().Truncate(time.Microsecond), Method: r.Method, Headers: r.Header.Clone()}
	if utf8.Valid(body) {
		got.Body = string(body)
	} else {
		got.Base64 = body
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.requests == nil {
		s.requests = map[string][]Request{}
	}
	if _, known := s.requests[name]; !known && len(s.requests) >= maxNames {
		http.Error(w, "too many sinks: restart the server or reuse a name", http.StatusInsufficientStorage)
		return
	}
	kept := append(s.requests[name], got)
	s.requests[name] = kept[max(0, len(kept)-maxRequests):]
	w.WriteHeader(http.StatusOK)
}

// Arrived returns what arrived under a name, oldest first.
func (s *Sink) Arrived(name string) []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests[name])
}

func (s *Sink) show(w http.ResponseWriter, r *http.Request, name string) {
	arrived := s.Arrived(name)
	if strings.Contains(r.Header.Get("Accept"), "application/json") {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"name": name, "requests": arrived})
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if len(arrived) == 0 {
		fmt.Fprintf(w, "Nothing has arrived at %s yet.\n", name)
		return
	}
	for _, one := range arrived {
		fmt.Fprintf(w, "%s %s\n", one.At.Format("15:04:05.000000"), one.Method)
		names := make([]string, 0, len(one.Headers))
		for header := range one.Headers {
			names = append(names, header)
		}
		slices.Sort(names)
		for _, header := range names {
			fmt.Fprintf(w, "  %s: %s\n", header, strings.Join(one.Headers[header], ", "))
		}
		if one.Base64 != nil {
			fmt.Fprintf(w, "  (%d bytes that are no text)\n\n", len(one.Base64))
			continue
		}
		fmt.Fprintf(w, "  %s\n\n", one.Body)
	}
}
