package timers

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/belfryhq/belfry"
	"github.com/belfryhq/belfry/api/internal/body"
)

// create accepts a timer.
func (a *api) create(w http.ResponseWriter, r *http.Request) {
	var req request
	if err := body.Read(w, r, a.s.MaxBody, &req); err != nil {
		a.fail(w, r, err)
		return
	}
	m, err := a.message(&req, r.Header.Get("Idempotency-Key"), time.Now())
	if errors.Is(err, errNotAhead) {
		if first, known := a.first(r.Context(), &req, r.Header.Get("Idempotency-Key")); known {
			reply(w, http.StatusOK, codeOK, "timer created successfully", summarize(&first))
			return
		}
	}
	if err != nil {
		a.fail(w, r, err)
		return
	}
	messages := []belfry.Message{m}
	results, err := a.client.Put(r.Context(), messages, 0)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	m, repeated, err := a.accepted(r.Context(), messages[0], results[0])
	switch {
	case err != nil:
		a.fail(w, r, err)
	case repeated:
		reply(w, http.StatusOK, codeOK, "timer created successfully", summarize(&m))
	default:
		reply(w, http.StatusCreated, codeOK, "timer created successfully", summarize(&m))
	}
}

// first returns the timer that a request made whose instant has passed since: its idempotency key tells that it was made.
func (a *api) first(ctx context.Context, req *request, headerKey string) (belfry.Message, bool) {
	var m belfry.Message
	var k kept
	if err := a.setKey(&m, &k, req, headerKey); err != nil || m.DedupKey == "" {
		return m, false
	}
	first, err := a.client.Holder(ctx, Queue, m.DedupKey)
	return first, err == nil && keptOf(&first).Hash == k.Hash
}

// accepted returns the timer that a request made, or, repeated, the one that the first request with its idempotency key made.
func (a *api) accepted(ctx context.Context, m belfry.Message, result belfry.PutResult) (belfry.Message, bool, error) {
	if !errors.Is(result.Err, belfry.ErrDuplicate) || result.Existing == nil {
		return m, false, result.Err
	}
	first, err := a.client.Get(ctx, Queue, result.Existing.ID)
	if err != nil {
		return m, false, err
	}
	if keptOf(&m).Hash != keptOf(&first).Hash {
		return m, false, bad("the idempotency key was used for another timer (%s): use a new key", first.ID)
	}
	return first, true, nil
}

// id returns the timer's id in the path.
func id(r *http.Request) (string, error) {
	text := r.PathValue("id")
	parsed, err := uuid.Parse(text)
	if err != nil || len(text) != 36 {
		return "", bad("timer id %.64q is not a UUID", text)
	}
	return parsed.String(), nil
}

// get shows a timer.
func (a *api) get(w http.ResponseWriter, r *http.Request) {
	id, err := id(r)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	m, err := a.client.Get(r.Context(), Queue, id)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	reply(w, http.StatusOK, codeOK, "success", describe(&m))
}

// cancel calls a pending timer off; a canceled one answers again as it did.
func (a *api) cancel(w http.ResponseWriter, r *http.Request) {
	id, err := id(r)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	m, err := a.client.Cancel(r.Context(), Queue, id)
	if err != nil {
		a.fail(w, r, stateError("cancel", m, err))
		return
	}
	reply(w, http.StatusOK, codeOK, "timer canceled successfully", map[string]string{"id": id, "status": statuses[m.State]})
}

// stateError says which status stands in the way.
func stateError(verb string, m belfry.Message, err error) error {
	switch {
	case errors.Is(err, belfry.ErrInFlight):
		return bad("cannot %s timer with status 'executing'", verb)
	case errors.Is(err, belfry.ErrFinished):
		return bad("cannot %s timer with status '%s'", verb, statuses[m.State])
	default:
		return err
	}
}

// change is the body of update: a request, and the fields of a reply, which are ignored.
type change struct {
	request

	ID             json.RawMessage `json:"id"`
	CreatedAt      json.RawMessage `json:"created_at"`
	UpdatedAt      json.RawMessage `json:"updated_at"`
	CallbackType   json.RawMessage `json:"callback_type"`
	CallbackConfig json.RawMessage `json:"callback_config"`
	Status         json.RawMessage `json:"status"`
	LastError      json.RawMessage `json:"last_error"`
	ExecutedAt     json.RawMessage `json:"executed_at"`
}

// update changes a pending timer.
func (a *api) update(w http.ResponseWriter, r *http.Request) {
	id, err := id(r)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	var c change
	if err := body.Read(w, r, a.s.MaxBody, &c); err != nil {
		a.fail(w, r, err)
		return
	}
	if err := c.modernize(); err != nil {
		a.fail(w, r, err)
		return
	}
	if c.IdempotencyKey != nil {
		a.fail(w, r, bad("idempotency_key belongs to the creation of a timer and cannot be changed"))
		return
	}
	m, err := a.client.Update(r.Context(), Queue, id, func(m *belfry.Message) error {
		if m.State != belfry.Scheduled {
			return belfry.ErrInFlight
		}
		return a.edit(m, &c.request, time.Now())
	})
	if err != nil {
		a.fail(w, r, stateError("update", m, err))
		return
	}
	s := summarize(&m)
	updated := instant(m.UpdatedAt)
	s.UpdatedAt = &updated
	reply(w, http.StatusOK, codeOK, "timer updated successfully", s)
}

// edit applies the given fields to a timer.
func (a *api) edit(m *belfry.Message, req *request, now time.Time) error {
	at, given, err := a.instantOf(req, now)
	if err != nil {
		return err
	}
	if given {
		m.FireAt = at
	}
	k := keptOf(m)
	if req.Retry != nil {
		if m.Retry, err = req.Retry.policy(); err != nil {
			return err
		}
	}
	if req.ExpiresAt != nil {
		if m.ExpiresAt, err = parseInstant("expires_at", *req.ExpiresAt); err != nil {
			return err
		}
	}
	if !m.ExpiresAt.IsZero() && !m.ExpiresAt.After(m.FireAt) {
		return bad("expires_at must be after execute_at")
	}
	if req.Callback != nil {
		if err := a.setCallback(m, &k, req.Callback); err != nil {
			return err
		}
	}
	if req.Metadata != nil {
		k.Metadata = req.Metadata
	}
	m.Metadata, err = encode(k)
	return err
}
