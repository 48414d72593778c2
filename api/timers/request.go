package timers

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"

	"github.com/sosodev/duration"

	"github.com/belfryhq/belfry"
)

// request is the body of create and, in part, of update. Absent fields and null are the same.
type request struct {
	ExecuteAt      *string         `json:"execute_at"`
	ExecuteAtLocal *string         `json:"execute_at_local"`
	Timezone       *string         `json:"timezone"`
	Delay          *string         `json:"delay"`
	ExpiresAt      *string         `json:"expires_at"`
	Callback       *callback       `json:"callback"`
	Metadata       json.RawMessage `json:"metadata"`
	Retry          *retry          `json:"retry"`
	IdempotencyKey *string         `json:"idempotency_key"`

	// The older spelling of an HTTP callback.
	CallbackURL     *string           `json:"callback_url"`
	CallbackPayload json.RawMessage   `json:"callback_payload"`
	CallbackHeaders map[string]string `json:"callback_headers"`
}

// callback is what a timer does.
type callback struct {
	Type    string            `json:"type"`
	URL     *string           `json:"url,omitempty"`
	Topic   *string           `json:"topic,omitempty"`
	Key     *string           `json:"key,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	Payload json.RawMessage   `json:"payload,omitempty"`
	Method  *string           `json:"method,omitempty"`
	Timeout *string           `json:"timeout,omitempty"`
}

// retry is a retry policy as the API speaks of it.
type retry struct {
	Attempts      int      `json:"attempts"`
	Backoff       string   `json:"backoff"`
	Base          string   `json:"base"`
	Max           string   `json:"max"`
	Factor        float64  `json:"factor"`
	Delays        []string `json:"delays"`
	Jitter        float64  `json:"jitter"`
	MaxAge        string   `json:"max_age"`
	RetryAfterMax string   `json:"retry_after_max"`
}

// kept is what the API keeps in the message's metadata beside what the message itself says.
type kept struct {
	Callback callback        `json:"callback"` // as given, without the payload
	Null     bool            `json:"null,omitempty"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
	Hash     string          `json:"hash,omitempty"` // of the request, where it has an idempotency key
}

// maxIdempotencyKey bounds an idempotency key in bytes, so that it fits a dedup key.
const maxIdempotencyKey = 255

// message turns a request to create a timer into a message.
func (a *api) message(req *request, headerKey string, now time.Time) (belfry.Message, error) {
	if err := req.modernize(); err != nil {
		return belfry.Message{}, err
	}
	m := belfry.Message{Queue: Queue, Kind: "timer", Retention: belfry.Retention{Done: a.s.Retention, Dead: a.s.Retention}}
	at, given, err := a.instantOf(req, now)
	if err != nil {
		return m, err
	}
	if !given {
		return m, bad("execute_at is missing: give an RFC 3339 instant, or delay, or execute_at_local with timezone")
	}
	m.FireAt = at
	if req.Callback == nil {
		return m, bad("callback is missing: give an object with type http or nats")
	}
	if err := a.setOptions(&m, req); err != nil {
		return m, err
	}
	k := kept{Metadata: req.Metadata}
	if err := a.setCallback(&m, &k, req.Callback); err != nil {
		return m, err
	}
	if err := a.setKey(&m, &k, req, headerKey); err != nil {
		return m, err
	}
	m.Metadata, err = encode(k)
	return m, err
}

// modernize turns the older spelling into a callback.
func (req *request) modernize() error {
	if string(req.Metadata) == "null" {
		req.Metadata = nil
	}
	if req.CallbackURL == nil && req.CallbackPayload == nil && req.CallbackHeaders == nil {
		return nil
	}
	if req.Callback != nil {
		return bad("callback and callback_url are two spellings of one thing: give one")
	}
	if req.CallbackURL == nil {
		return bad("callback_url is missing beside callback_payload or callback_headers")
	}
	req.Callback = &callback{Type: "http", URL: req.CallbackURL, Payload: req.CallbackPayload, Headers: req.CallbackHeaders}
	return nil
}

// setOptions reads what is not the callback.
func (a *api) setOptions(m *belfry.Message, req *request) (err error) {
	m.Retry = belfry.RetryPolicy{MaxAttempts: 1}
	if req.Retry != nil {
		if m.Retry, err = req.Retry.policy(); err != nil {
			return err
		}
	}
	if req.ExpiresAt == nil {
		return nil
	}
	m.ExpiresAt, err = parseInstant("expires_at", *req.ExpiresAt)
	if err == nil && !m.ExpiresAt.After(m.FireAt) {
		err = bad("expires_at must be after execute_at")
	}
	return err
}

// policy reads a retry policy.
func (r *retry) policy() (belfry.RetryPolicy, error) {
	p := belfry.RetryPolicy{MaxAttempts: r.Attempts, Factor: r.Factor, Jitter: r.Jitter}
	p.Backoff = backoff(r.Backoff)
	for _, d := range []struct {
		field string
		text  string
		to    *time.Duration
	}{
		{"retry.base", r.Base, &p.Base},
		{"retry.max", r.Max, &p.Max},
		{"retry.max_age", r.MaxAge, &p.MaxAge},
		{"retry.retry_after_max", r.RetryAfterMax, &p.RetryAfterMax},
	} {
		if d.text == "" {
			continue
		}
		var err error
		if *d.to, err = parseDuration(d.field, d.text); err != nil {
			return p, err
		}
	}
	for _, text := range r.Delays {
		d, err := parseDuration("retry.delays", text)
		if err != nil {
			return p, err
		}
		p.Delays = append(p.Delays, d)
	}
	if r.Attempts < 0 {
		return p, bad("retry.attempts is %d: give a positive number", r.Attempts)
	}
	if err := belfry.ValidateRetry(p); err != nil {
		return p, bad("%v", err)
	}
	return p, nil
}

// setKey makes a request with an idempotency key repeatable: the key is held as long as the timer is kept.
func (a *api) setKey(m *belfry.Message, k *kept, req *request, headerKey string) error {
	key := headerKey
	if req.IdempotencyKey != nil {
		if headerKey != "" && headerKey != *req.IdempotencyKey {
			return bad("idempotency_key and the header Idempotency-Key differ: give one")
		}
		key = *req.IdempotencyKey
		if key == "" {
			return bad("idempotency_key must not be empty")
		}
	}
	if key == "" {
		return nil
	}
	if len(key) > maxIdempotencyKey {
		return bad("the idempotency key has %d bytes: at most %d are allowed", len(key), maxIdempotencyKey)
	}
	m.DedupKey, m.DedupUntil = key, a.dedupUntil(m.FireAt)
	once := *req
	once.IdempotencyKey = nil
	text, err := encode(once)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(text)
	k.Hash = hex.EncodeToString(sum[:16])
	return nil
}

// dedupUntil is until when the key of a timer is held that fires at an instant.
func (a *api) dedupUntil(fireAt time.Time) time.Time {
	if a.s.Retention == belfry.Forever || lastInstant.Sub(fireAt) < a.s.Retention {
		return lastInstant
	}
	return fireAt.Add(a.s.Retention)
}

// lastInstant is the latest that a timer can name.
var lastInstant = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)

// errNotAhead: the instant is not as far ahead as it must be.
var errNotAhead = bad("execute_at must be in the future")

// instantOf reads when a timer is to fire; given is false when the request does not say.
func (a *api) instantOf(req *request, now time.Time) (at time.Time, given bool, err error) {
	ways := 0
	for _, field := range []*string{req.ExecuteAt, req.ExecuteAtLocal, req.Delay} {
		if field != nil {
			ways++
		}
	}
	switch {
	case ways > 1:
		return at, true, bad("execute_at, execute_at_local and delay are three ways to say one thing: give one")
	case req.Timezone != nil && req.ExecuteAtLocal == nil:
		return at, true, bad("timezone goes with execute_at_local")
	case ways == 0:
		return at, false, nil
	case req.ExecuteAt != nil:
		at, err = parseInstant("execute_at", *req.ExecuteAt)
	case req.Delay != nil:
		var d time.Duration
		d, err = parseDuration("delay", *req.Delay)
		at = now.Add(d)
	default:
		at, err = parseLocal(*req.ExecuteAtLocal, req.Timezone)
	}
	if err != nil {
		return at, true, err
	}
	if at.Before(now) || a.s.MinDelay > 0 && !at.After(now.Add(a.s.MinDelay)) {
		return at, true, errNotAhead
	}
	return at, true, nil
}

// parseInstant reads an instant in RFC 3339.
func parseInstant(field, text string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05Z07", "2006-01-02T15:04Z07:00", "2006-01-02T15:04Z0700", "2006-01-02T15:04Z07"} {
		if at, err := time.Parse(layout, strings.ToUpper(text)); err == nil {
			if year := at.UTC().Year(); year < 1 || year > 9999 {
				break
			}
			return at.UTC(), nil
		}
	}
	return time.Time{}, bad("%s %.64q is not an instant: write it in RFC 3339, e.g. 2026-12-01T15:30:00Z", field, text)
}

// parseLocal reads a wall-clock time in a zone. One that the zone skips becomes the instant as far after the gap as it lies in
// it; one that the zone has twice is the first.
func parseLocal(text string, zone *string) (time.Time, error) {
	if zone == nil {
		return time.Time{}, bad("timezone is missing beside execute_at_local: give an IANA name, e.g. Europe/Berlin")
	}
	location, err := time.LoadLocation(*zone)
	if err != nil || *zone == "Local" || *zone == "" {
		return time.Time{}, bad("timezone %.64q is unknown: give an IANA name, e.g. Europe/Berlin", *zone)
	}
	wall, err := time.Parse("2006-01-02T15:04:05.999999999", text)
	if err != nil {
		if wall, err = time.Parse("2006-01-02T15:04", text); err != nil {
			return time.Time{}, bad("execute_at_local %.64q is not a wall-clock time: write it as 2026-12-01T15:30:00", text)
		}
	}
	return earliest(wall, location), nil
}

// earliest returns the first instant at which a clock in the zone shows the wall time, or, in a gap, the one that the offset
// before the gap gives.
func earliest(wall time.Time, location *time.Location) time.Time {
	_, before := wall.Add(-26 * time.Hour).In(location).Zone()
	_, after := wall.Add(26 * time.Hour).In(location).Zone()
	first := wall.Add(-time.Duration(before) * time.Second)
	if _, offset := first.In(location).Zone(); offset == before {
		return first.UTC()
	}
	second := wall.Add(-time.Duration(after) * time.Second)
	if _, offset := second.In(location).Zone(); offset == after {
		return second.UTC()
	}
	return first.UTC()
}

// parseDuration reads a duration as Go writes it (90s, 1h30m) or as ISO 8601 does (PT1H30M). One in months or years is none: how
// long those are depends on when they begin.
func parseDuration(field, text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil && strings.HasPrefix(strings.ToUpper(text), "P") {
		var iso *duration.Duration
		if iso, err = duration.Parse(strings.ToUpper(text)); err == nil {
			d = iso.ToTimeDuration()
			if iso.Years != 0 || iso.Months != 0 || !strings.ContainsAny(text, "0123456789") {
				return 0, bad("%s %.64q has no certain length: write it in weeks, days, hours, minutes and seconds, e.g. P1DT12H", field, text)
			}
		}
	}
	if err != nil || d < 0 {
		return 0, bad("%s %.64q is not a duration: write it as 90s, 1h30m or PT1H30M", field, text)
	}
	return d, nil
}
