package timers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/belfryhq/belfry"
	"github.com/belfryhq/belfry/api/internal/body"
)

// maxBatch is how many timers one batch creates at most.
const maxBatch = 1000

// batchRequest is the body of a batch.
type batchRequest struct {
	Timers []json.RawMessage `json:"timers"`
	Atomic bool              `json:"atomic"`
}

// batchResult is what became of one timer of a batch.
type batchResult struct {
	Index int      `json:"index"`
	Code  int      `json:"code"`
	Error string   `json:"error,omitempty"`
	Timer *summary `json:"timer,omitempty"`
}

// batch creates many timers. 201: all; 200: some, each result tells; 400: none, because an atomic batch had a bad one.
func (a *api) batch(w http.ResponseWriter, r *http.Request) {
	var req batchRequest
	if err := body.Read(w, r, a.s.MaxBody, &req); err != nil {
		a.fail(w, r, err)
		return
	}
	if len(req.Timers) == 0 || len(req.Timers) > maxBatch {
		a.fail(w, r, bad("timers must have from 1 to %d elements, not %d", maxBatch, len(req.Timers)))
		return
	}
	if r.Header.Get("Idempotency-Key") != "" {
		a.fail(w, r, bad("the header Idempotency-Key is for one timer: give each timer of a batch its own idempotency_key"))
		return
	}
	results, messages, places := a.readBatch(r.Context(), &req)
	refused := 0
	for i := range results {
		if results[i].Code != codeOK {
			refused++
		}
	}
	if refused > 0 && req.Atomic {
		reply(w, http.StatusBadRequest, codeInvalid, fmt.Sprintf("%d of %d timers are invalid; none was created", refused, len(results)),
			map[string]any{"results": results})
		return
	}
	put, err := a.put(r.Context(), messages, req.Atomic)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	for i, place := range places {
		m, repeated, err := a.accepted(r.Context(), messages[i], put[i])
		if err == nil && repeated && req.Atomic {
			err = bad("the idempotency key is in use: the timer %s exists", m.ID)
		}
		results[place] = resultOf(place, m, err)
		if err != nil {
			refused++
		}
	}
	a.replyBatch(w, results, refused, req.Atomic)
}

// put accepts the messages of a batch. The client refuses all where one is invalid, before anything is stored; unless the
// batch is atomic, the others are then accepted without it.
func (a *api) put(ctx context.Context, messages []belfry.Message, atomic bool) ([]belfry.PutResult, error) {
	if atomic {
		return a.client.Put(ctx, messages, belfry.Atomic)
	}
	results, err := a.client.Put(ctx, messages, 0)
	var invalid *belfry.InvalidError
	switch {
	case !errors.As(err, &invalid):
		return results, err
	case len(messages) == 1:
		return []belfry.PutResult{{Err: invalid}}, nil
	}
	for _, half := range [][]belfry.Message{messages[:len(messages)/2], messages[len(messages)/2:]} {
		part, err := a.put(ctx, half, false)
		if err != nil { // of the store: what was accepted is told all the same
			part = make([]belfry.PutResult, len(half))
			for i := range part {
				part[i].Err = err
			}
		}
		results = append(results, part...)
	}
	return results, nil
}

func (a *api) replyBatch(w http.ResponseWriter, results []batchResult, refused int, atomic bool) {
	data := map[string]any{"results": results}
	switch {
	case refused == 0:
		reply(w, http.StatusCreated, codeOK, fmt.Sprintf("%d timers created successfully", len(results)), data)
	case atomic:
		reply(w, http.StatusBadRequest, codeInvalid, "the batch was refused; no timer was created", data)
	default:
		reply(w, http.StatusOK, codeOK, fmt.Sprintf("%d of %d timers created", len(results)-refused, len(results)), data)
	}
}

// readBatch reads the timers of a batch: what is wrong with the bad ones, those that an earlier request has created (unless all
// are to be created now or none), and the messages of the others with their places.
func (a *api) readBatch(ctx context.Context, req *batchRequest) (results []batchResult, messages []belfry.Message, places []int) {
	now := time.Now()
	results = make([]batchResult, len(req.Timers))
	for i, raw := range req.Timers {
		var one request
		err := body.Parse(raw, &one)
		if err == nil {
			var m belfry.Message
			if m, err = a.message(&one, "", now); err == nil {
				messages, places = append(messages, m), append(places, i)
				continue
			}
		}
		var first belfry.Message
		if errors.Is(err, errNotAhead) && !req.Atomic {
			var known bool
			if first, known = a.first(ctx, &one, ""); known {
				err = nil
			}
		}
		results[i] = resultOf(i, first, err)
	}
	return results, messages, places
}

func resultOf(index int, m belfry.Message, err error) batchResult {
	var bad *body.Error
	var invalid *belfry.InvalidError
	switch {
	case err == nil:
		s := summarize(&m)
		return batchResult{Index: index, Timer: &s}
	case errors.As(err, &bad):
		return batchResult{Index: index, Code: codeInvalid, Error: bad.Text}
	case errors.As(err, &invalid):
		return batchResult{Index: index, Code: codeInvalid, Error: invalid.Error()}
	case errors.Is(err, belfry.ErrAborted):
		return batchResult{Index: index, Code: codeInvalid, Error: "not created, because another timer of the batch was refused"}
	default:
		return batchResult{Index: index, Code: codeInternal, Error: "internal error"}
	}
}
