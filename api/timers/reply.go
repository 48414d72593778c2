package timers

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/belfryhq/belfry/api/internal/body"
)

// The codes of the envelope.
const (
	codeOK           = 0
	codeInternal     = 1
	codeInvalid      = 2
	codeNotFound     = 3
	codeUnauthorized = 4
)

// envelope is every reply.
type envelope struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data"`
}

func reply(w http.ResponseWriter, status, code int, message string, data any) {
	text, err := encode(envelope{code, message, data})
	if err != nil { // before the status is out, so that no half of a reply passes for one
		status, text = http.StatusInternalServerError, []byte(`{"code":1,"message":"internal error","data":null}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n')) // the caller has gone when this fails
}

// methods are the handlers of one path by method; others are answered 405, and no method at all 404.
type methods map[string]http.HandlerFunc

// ServeHTTP calls the handler of the request's method.
func (m methods) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	method := r.Method
	if method == http.MethodHead { // as GET: the server leaves the body out
		method = http.MethodGet
	}
	if h, ok := m[method]; ok {
		h(w, r)
		return
	}
	if len(m) == 0 {
		reply(w, http.StatusNotFound, codeNotFound, "no such route", nil)
		return
	}
	allowed := make([]string, 0, len(m)+1)
	for method := range m {
		allowed = append(allowed, method)
	}
	if m[http.MethodGet] != nil {
		allowed = append(allowed, http.MethodHead)
	}
	slices.Sort(allowed)
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	reply(w, http.StatusMethodNotAllowed, codeInvalid,
		fmt.Sprintf("method %s is not allowed here: use %s", r.Method, strings.Join(allowed, ", ")), nil)
}

// bad returns the error of a request that cannot be carried out as it is.
func bad(format string, args ...any) error { return body.Bad(format, args...) }

// instant is written as RFC 3339 in UTC, with milliseconds where there are any; the zero time as null.
type instant time.Time

// MarshalJSON writes the instant.
func (i instant) MarshalJSON() ([]byte, error) {
	t := time.Time(i)
	if t.IsZero() {
		return []byte("null"), nil
	}
	return json.Marshal(t.UTC().Truncate(time.Millisecond).Format(time.RFC3339Nano))
}
