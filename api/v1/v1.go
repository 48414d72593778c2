// Package v1 is the native REST API: messages of every queue, kind and target. Errors are problem documents (RFC 9457). The
// command line speaks it to a running server.
package v1

import (
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"

	"github.com/belfryhq/belfry"
	"github.com/belfryhq/belfry/api/auth"
	"github.com/belfryhq/belfry/api/internal/body"
)

// Settings are those of the API.
type Settings struct {
	Keys    auth.Keys
	MaxBody int64 // bytes of a request's body; zero: 1 MiB
	// Targets are the targets that messages may name, with what checks them (nil: nothing does).
	Targets map[string]Checker
	Logger  *slog.Logger // nil: slog.Default()
}

// Checker refuses, at the accept, a message that its target could never deliver.
type Checker interface {
	Check(d belfry.Delivery) error
}

type api struct {
	client *belfry.Client
	s      Settings
}

// New makes the handler of /api/v1/.
func New(c *belfry.Client, s Settings) http.Handler {
	if s.MaxBody == 0 {
		s.MaxBody = 1 << 20
	}
	if s.Logger == nil {
		s.Logger = slog.Default()
	}
	a := &api{client: c, s: s}
	mux := http.NewServeMux()
	for pattern, h := range map[string]func(http.ResponseWriter, *http.Request) error{
		"POST /api/v1/messages":                     a.create,
		"GET /api/v1/messages":                      a.list,
		"GET /api/v1/messages/{queue}/{id}":         a.get,
		"DELETE /api/v1/messages/{queue}/{id}":      a.cancel,
		"PATCH /api/v1/messages/{queue}/{id}":       a.patch,
		"POST /api/v1/messages/{queue}/{id}/revive": a.revive,
		"GET /api/v1/queues/{queue}":                a.queue,
		"PUT /api/v1/queues/{queue}":                a.setQueue,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			if err := h(w, r); err != nil {
				a.fail(w, r, err)
			}
		})
	}
	return s.Keys.Require(routed(mux), func(w http.ResponseWriter, _ *http.Request) {
		problem(w, http.StatusUnauthorized, "send an API key in X-API-Key or as a bearer token")
	})
}

// create accepts a message. 201; 200 when the id or dedup key was taken by the message that is returned.
func (a *api) create(w http.ResponseWriter, r *http.Request) error {
	var in input
	if err := body.Read(w, r, a.s.MaxBody, &in); err != nil {
		return err
	}
	m, err := in.message()
	if err != nil {
		return err
	}
	if err := a.check(&m); err != nil {
		return err
	}
	messages := []belfry.Message{m}
	results, err := a.client.Put(r.Context(), messages, 0)
	if err != nil {
		return err
	}
	m = messages[0]
	if err := results[0].Err; err != nil {
		if results[0].Existing == nil {
			return err
		}
		if m, err = a.client.Get(r.Context(), m.Queue, results[0].Existing.ID); err != nil {
			return err
		}
		return write(w, http.StatusOK, &m)
	}
	m.Version = results[0].Version
	w.Header().Set("Location", location(&m))
	return write(w, http.StatusCreated, &m)
}

// check asks the message's target.
func (a *api) check(m *belfry.Message) error {
	if m.Target == "" {
		return nil
	}
	checker, known := a.s.Targets[m.Target]
	if !known {
		return bad("target %.64q is not configured here", m.Target)
	}
	if checker == nil {
		return nil
	}
	if err := checker.Check(belfry.Delivery{
		Queue: m.Queue, Target: m.Target, Address: m.Address, Params: m.Params, ContentType: m.ContentType,
		Payload: m.Payload, Headers: m.Headers, Timeout: m.Timeout,
	}); err != nil {
		return bad("%v", err)
	}
	return nil
}

func (a *api) get(w http.ResponseWriter, r *http.Request) error {
	m, err := a.client.Get(r.Context(), r.PathValue("queue"), r.PathValue("id"))
	if err != nil {
		return err
	}
	return write(w, http.StatusOK, &m)
}

// cancel calls a message off; with ?interrupt=true also a running one, with ?purge=true it is removed.
func (a *api) cancel(w http.ResponseWriter, r *http.Request) error {
	queue, id := r.PathValue("queue"), r.PathValue("id")
	var purge, interrupt bool
	if err := parameters(r, func(name, value string) (err error) {
		switch name {
		case "purge":
			purge, err = flag(name, value)
		case "interrupt":
			interrupt, err = flag(name, value)
		default:
			err = bad("parameter %.64q is unknown: use purge, interrupt", name)
		}
		return err
	}); err != nil {
		return err
	}
	if purge {
		if err := a.client.Remove(r.Context(), queue, id); err != nil {
			return err
		}
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	call := a.client.Cancel
	if interrupt {
		call = a.client.Interrupt
	}
	m, err := call(r.Context(), queue, id)
	if err != nil {
		return err
	}
	return write(w, http.StatusOK, &m)
}

// patch changes a waiting message; If-Match names the version that was read.
func (a *api) patch(w http.ResponseWriter, r *http.Request) error {
	var in input
	if err := body.Read(w, r, a.s.MaxBody, &in); err != nil {
		return err
	}
	if in.Queue != nil || in.ID != nil || in.DedupKey != nil {
		return bad("queue, id and dedup_key are what a message is known by and cannot be changed: leave them out")
	}
	var want int64
	if tag := r.Header.Get("If-Match"); tag != "" && tag != "*" {
		var err error
		if want, err = strconv.ParseInt(strings.Trim(tag, `"`), 10, 64); err != nil {
			return bad("If-Match %.64q is not an ETag of this API", tag)
		}
	}
	m, err := a.client.Update(r.Context(), r.PathValue("queue"), r.PathValue("id"), func(m *belfry.Message) error {
		if want != 0 && m.Version != want {
			return &body.Error{Status: http.StatusPreconditionFailed, Text: fmt.Sprintf("the message is at version %d", m.Version)}
		}
		if err := in.apply(m); err != nil {
			return err
		}
		return a.check(m)
	})
	if err != nil {
		return err
	}
	return write(w, http.StatusOK, &m)
}

func (a *api) revive(w http.ResponseWriter, r *http.Request) error {
	var in struct { // of input, what revive reads
		At *string `json:"at"`
		In *string `json:"in"`
	}
	if r.ContentLength != 0 {
		if err := body.Read(w, r, a.s.MaxBody, &in); err != nil {
			return err
		}
	}
	at, _, err := (&input{At: in.At, In: in.In}).instant()
	if err != nil {
		return err
	}
	m, err := a.client.Revive(r.Context(), r.PathValue("queue"), r.PathValue("id"), at)
	if err != nil {
		return err
	}
	return write(w, http.StatusOK, &m)
}

func (a *api) queue(w http.ResponseWriter, r *http.Request) error {
	settings, err := a.client.QueueSettings(r.Context(), r.PathValue("queue"))
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, settings)
}

func (a *api) setQueue(w http.ResponseWriter, r *http.Request) error {
	var settings belfry.QueueSettings
	if err := body.Read(w, r, a.s.MaxBody, &settings); err != nil {
		return err
	}
	if err := a.client.SetQueue(r.Context(), r.PathValue("queue"), func(s *belfry.QueueSettings) { *s = settings }); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, settings)
}

// bad returns the error of a request that cannot be carried out as it is.
func bad(format string, args ...any) error { return body.Bad(format, args...) }
