package web

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"
)

// RequestIDHeader carries a request's id in both directions.
const RequestIDHeader = "X-Request-Id"

type requestIDKey struct{}

// RequestID returns the id of the request that a context belongs to; empty: it belongs to none.
func RequestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

// maxRequestID is how many characters of a client's own id are taken over.
const maxRequestID = 128

// requestID returns the client's id if it can be logged and sent back as it is, and a new one otherwise.
func requestID(r *http.Request) string {
	id := r.Header.Get(RequestIDHeader)
	odd := func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("-_.", c)
	}
	if id == "" || len(id) > maxRequestID || strings.ContainsFunc(id, odd) {
		return rand.Text()
	}
	return id
}

// Wrap returns the handler with request ids, the access log at level debug, and an answer to panics. The log has the path
// but neither the query nor a header, where secrets are.
func Wrap(handler http.Handler, logger *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		id := requestID(r)
		w.Header().Set(RequestIDHeader, id)
		r = r.WithContext(context.WithValue(r.Context(), requestIDKey{}, id))
		seen := &response{ResponseWriter: w}
		defer func() {
			if cause := recover(); cause != nil {
				seen.recovered(r, cause, logger)
			}
			logger.LogAttrs(r.Context(), slog.LevelDebug, "request",
				slog.String("id", id), slog.String("method", r.Method), slog.String("path", r.URL.Path),
				slog.Int("status", seen.status), slog.Int64("bytes", seen.bytes), slog.Duration("took", time.Since(start)))
		}()
		handler.ServeHTTP(seen, r)
	})
}

// response notes what a handler answers.
type response struct {
	http.ResponseWriter
	status int
	bytes  int64
}

// WriteHeader notes the status; an informational one is not the answer yet.
func (w *response) WriteHeader(status int) {
	if w.status == 0 && status >= http.StatusOK {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write notes how much there is.
func (w *response) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	n, err := w.ResponseWriter.Write(p)
	w.bytes += int64(n)
	return n, err
}

// Unwrap lets http.ResponseController find what the server's writer can do.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// recovered answers a request whose handler panicked. The text of the panic goes to the log alone; an answer that has
// begun is cut off, so that the client does not take it for complete.
func (w *response) recovered(r *http.Request, cause any, logger *slog.Logger) {
	if cause == http.ErrAbortHandler { //nolint:errorlint // net/http compares it so, too
		panic(cause)
	}
	logger.ErrorContext(r.Context(), "a handler panicked", "id", RequestID(r.Context()), "path", r.URL.Path,
		"panic", cause, "stack", string(debug.Stack()))
	if w.status != 0 {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusInternalServerError)
	_, _ = w.Write([]byte(`{"code":1,"message":"internal error; the log has it under the request id in the header X-Request-Id","data":null}` + "\n"))
}
