package v1

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/belfryhq/belfry"
	"github.com/belfryhq/belfry/target"
)

// input is a message as a request writes it. Absent fields keep what is there, or the default.
type input struct {
	Queue         *string           `json:"queue"`
	ID            *string           `json:"id"`
	Kind          *string           `json:"kind"`
	Target        *string           `json:"target"`
	Address       *string           `json:"address"`
	Params        map[string]string `json:"params"`
	ContentType   *string           `json:"content_type"`
	Payload       json.RawMessage   `json:"payload"`
	PayloadText   *string           `json:"payload_text"`
	PayloadBase64 *string           `json:"payload_base64"`
	Headers       map[string]string `json:"headers"`
	Metadata      json.RawMessage   `json:"metadata"`
	Priority      *int32            `json:"priority"`
	Group         *string           `json:"group"`
	DedupKey      *string           `json:"dedup_key"`
	At            *string           `json:"at"`
	In            *string           `json:"in"`
	ExpiresAt     *string           `json:"expires_at"`
	Timeout       *string           `json:"timeout"`
	MaxAttempts   *int              `json:"max_attempts"`
	KeepDone      *string           `json:"keep_done"`
	KeepDead      *string           `json:"keep_dead"`
}

// message makes a new message of the input.
func (in *input) message() (belfry.Message, error) {
	m := belfry.Message{Queue: belfry.DefaultQueue, FireAt: time.Now(), Retention: belfry.DefaultRetention}
	set(&m.Queue, in.Queue)
	set(&m.ID, in.ID)
	set(&m.DedupKey, in.DedupKey)
	return m, in.apply(&m)
}

// apply changes what the input gives, but for the address of the message.
func (in *input) apply(m *belfry.Message) error {
	set(&m.Kind, in.Kind)
	set(&m.Target, in.Target)
	set(&m.Address, in.Address)
	set(&m.ContentType, in.ContentType)
	set(&m.Priority, in.Priority)
	set(&m.Group, in.Group)
	set(&m.Retry.MaxAttempts, in.MaxAttempts)
	if in.Params != nil {
		for name := range in.Params {
			if strings.HasPrefix(name, target.TracePrefix) {
				return bad("param %.64q: names that begin with %s are Belfry's own; send the header traceparent instead", name, target.TracePrefix)
			}
		}
		params := maps.Clone(m.Params)
		maps.DeleteFunc(params, func(name, _ string) bool { return !strings.HasPrefix(name, target.TracePrefix) })
		if params == nil {
			params = map[string]string{}
		}
		maps.Copy(params, in.Params)
		m.Params = params
	}
	if in.Headers != nil {
		m.Headers = in.Headers
	}
	if in.Metadata != nil {
		m.Metadata = in.Metadata
	}
	if err := in.payload(m); err != nil {
		return err
	}
	at, given, err := in.instant()
	if err != nil {
		return err
	}
	if given {
		m.FireAt = at
	}
	if in.ExpiresAt != nil {
		if m.ExpiresAt, err = moment("expires_at", *in.ExpiresAt); err != nil {
			return err
		}
	}
	for _, d := range []struct {
		field string
		text  *string
		to    *time.Duration
	}{{"timeout", in.Timeout, &m.Timeout}, {"keep_done", in.KeepDone, &m.Retention.Done}, {"keep_dead", in.KeepDead, &m.Retention.Dead}} {
		if err := duration(d.field, d.text, d.to); err != nil {
			return err
		}
	}
	return nil
}

func set[T any](field *T, value *T) {
	if value != nil {
		*field = *value
	}
}

// duration reads a duration; "forever" is one for retentions.
func duration(field string, text *string, to *time.Duration) error {
	switch {
	case text == nil:
		return nil
	case *text == "forever" && field != "timeout":
		*to = belfry.Forever
		return nil
	}
	d, err := time.ParseDuration(*text)
	if err != nil || d < 0 {
		return bad("%s %.64q is not a duration: write it as 90s or 1h30m", field, *text)
	}
	*to = d
	return nil
}

// payload reads the payload in one of its three spellings.
func (in *input) payload(m *belfry.Message) error {
	given := 0
	if in.Payload != nil {
		given++
		m.Payload = in.Payload
		if in.ContentType == nil {
			m.ContentType = "application/json"
		}
	}
	if in.PayloadText != nil {
		given++
		m.Payload = []byte(*in.PayloadText)
	}
	if in.PayloadBase64 != nil {
		given++
		var err error
		if m.Payload, err = base64.StdEncoding.DecodeString(*in.PayloadBase64); err != nil {
			return bad("payload_base64 is not base64: encode the bytes with the standard alphabet and padding")
		}
	}
	if given > 1 {
		return bad("payload, payload_text and payload_base64 are three spellings of one thing: give one")
	}
	return nil
}

// instant reads when the message is to be delivered; given is false when the input does not say.
func (in *input) instant() (at time.Time, given bool, err error) {
	switch {
	case in.At != nil && in.In != nil:
		return at, true, bad("at and in are two ways to say one thing: give one")
	case in.At != nil:
		at, err = moment("at", *in.At)
		return at, true, err
	case in.In != nil:
		var d time.Duration
		if err := duration("in", in.In, &d); err != nil {
			return at, true, err
		}
		return time.Now().Add(d), true, nil
	}
	return at, false, nil
}

// moment reads an instant.
func moment(field, text string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return at, bad("%s %.64q is not an instant: write it in RFC 3339, e.g. 2026-12-01T15:30:00Z", field, text)
	}
	return at, nil
}

// Message is a message as replies show it.
type Message struct {
	Queue         string            `json:"queue"`
	ID            string            `json:"id"`
	State         string            `json:"state"`
	Kind          string            `json:"kind,omitempty"`
	Target        string            `json:"target,omitempty"`
	Address       string            `json:"address,omitempty"`
	Params        map[string]string `json:"params,omitempty"`
	ContentType   string            `json:"content_type,omitempty"`
	PayloadText   string            `json:"payload_text,omitempty"`
	PayloadBase64 []byte            `json:"payload_base64,omitempty"` // where it is not text
	Headers       map[string]string `json:"headers,omitempty"`
	Metadata      json.RawMessage   `json:"metadata,omitempty"`
	Priority      int32             `json:"priority"`
	Group         string            `json:"group,omitempty"`
	DedupKey      string            `json:"dedup_key,omitempty"`
	FireAt        time.Time         `json:"fire_at"`
	DueAt         time.Time         `json:"due_at"`
	Attempts      int               `json:"attempts"`
	Claims        int               `json:"claims"`
	WaitsFor      int               `json:"waits_for,omitempty"`
	LastError     string            `json:"last_error,omitempty"`
	CreatedAt     time.Time         `json:"created_at"`
	UpdatedAt     time.Time         `json:"updated_at"`
	FinishedAt    *time.Time        `json:"finished_at,omitempty"`
	Version       int64             `json:"version"`
	History       []Attempt         `json:"history,omitempty"`
}

// Attempt is one delivery with a known outcome.
type Attempt struct {
	Number    int       `json:"number"`
	StartedAt time.Time `json:"started_at"`
	Seconds   float64   `json:"seconds"`
	Status    int       `json:"status,omitempty"`
	Error     string    `json:"error,omitempty"`
	Owner     string    `json:"owner,omitempty"`
}

// view shows a message.
func view(m *belfry.Message) Message {
	v := Message{
		Queue: m.Queue, ID: m.ID, State: m.State.String(), Kind: m.Kind, Target: m.Target, Address: m.Address, Params: settings(m.Params),
		ContentType: m.ContentType, Headers: m.Headers, Metadata: m.Metadata, Priority: m.Priority, Group: m.Group,
		DedupKey: m.DedupKey, FireAt: m.FireAt, DueAt: m.DueAt, Attempts: m.Attempts, Claims: m.Claims, WaitsFor: m.Waits,
		LastError: m.LastError, CreatedAt: m.CreatedAt, UpdatedAt: m.UpdatedAt, Version: m.Version,
	}
	if utf8.Valid(m.Payload) {
		v.PayloadText = string(m.Payload)
	} else {
		v.PayloadBase64 = m.Payload
	}
	if !m.FinishedAt.IsZero() {
		v.FinishedAt = &m.FinishedAt
	}
	for _, a := range m.History {
		v.History = append(v.History, Attempt{a.Number, a.StartedAt, a.Duration.Seconds(), a.Status, a.Error, a.Owner})
	}
	return v
}

// settings returns the params that somebody has set: without the trace.
func settings(params map[string]string) map[string]string {
	own := maps.Clone(params)
	maps.DeleteFunc(own, func(name, _ string) bool { return strings.HasPrefix(name, target.TracePrefix) })
	return own
}

func location(m *belfry.Message) string {
	return "/api/v1/messages/" + url.PathEscape(m.Queue) + "/" + url.PathEscape(m.ID)
}

func write(w http.ResponseWriter, status int, m *belfry.Message) error {
	w.Header().Set("ETag", `"`+strconv.FormatInt(m.Version, 10)+`"`)
	return writeJSON(w, status, view(m))
}

func writeJSON(w http.ResponseWriter, status int, v any) error {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(v) // the caller has gone when this fails
	return nil
}
