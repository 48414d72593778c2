package v1

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/belfryhq/belfry"
	"github.com/belfryhq/belfry/api/internal/body"
)

// fail answers an error: the one place where errors become codes.
func (a *api) fail(w http.ResponseWriter, r *http.Request, err error) {
	var request *body.Error
	var invalid *belfry.InvalidError
	switch {
	case errors.As(err, &request):
		problem(w, request.Status, request.Text)
	case errors.As(err, &invalid):
		problem(w, http.StatusBadRequest, invalid.Error())
	case errors.Is(err, belfry.ErrNotFound):
		problem(w, http.StatusNotFound, "there is no such message")
	case errors.Is(err, belfry.ErrBadCursor):
		problem(w, http.StatusBadRequest, "the cursor is not one that a list of this order has given")
	case errors.Is(err, belfry.ErrInFlight), errors.Is(err, belfry.ErrFinished), errors.Is(err, belfry.ErrLive),
		errors.Is(err, belfry.ErrConflict), errors.Is(err, belfry.ErrDuplicate), errors.Is(err, belfry.ErrExists):
		problem(w, http.StatusConflict, err.Error())
	case errors.Is(err, context.Canceled) && r.Context().Err() != nil:
		return // the caller has gone
	default:
		a.s.Logger.Error("a request failed", "method", r.Method, "path", r.URL.Path, "error", err)
		w.Header().Set("Retry-After", "1")
		problem(w, http.StatusServiceUnavailable, "the store could not serve the request; try again")
	}
}

// problem writes a problem document.
func problem(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"title": http.StatusText(status), "status": status, "detail": text})
}

// routed serves what the mux has a route for, and answers the rest with a problem document where the mux would with a text.
func routed(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h, pattern := mux.Handler(r)
		if pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		refusal := refusal{header: http.Header{}}
		h.ServeHTTP(&refusal, r)
		if refusal.status != http.StatusMethodNotAllowed {
			problem(w, http.StatusNotFound, "there is no such route")
			return
		}
		allowed := refusal.header.Get("Allow")
		w.Header().Set("Allow", allowed)
		problem(w, http.StatusMethodNotAllowed, fmt.Sprintf("method %.32q is not allowed here: use %s", r.Method, allowed))
	})
}

// refusal takes the answer of a mux that has no route.
type refusal struct {
	header http.Header
	status int
}

// Header returns the header to be filled in.
func (r *refusal) Header() http.Header { return r.header }

// WriteHeader notes the status.
func (r *refusal) WriteHeader(status int) { r.status = status }

// Write drops the text.
func (r *refusal) Write(p []byte) (int, error) { return len(p), nil }
