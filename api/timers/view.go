package timers

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/belfryhq/belfry"
)

// summary is a timer as create, update and list show it.
type summary struct {
	ID           string   `json:"id"`
	CreatedAt    instant  `json:"created_at"`
	UpdatedAt    *instant `json:"updated_at,omitempty"`
	ExecuteAt    instant  `json:"execute_at"`
	CallbackType string   `json:"callback_type"`
	Status       string   `json:"status"`
	ExecutedAt   instant  `json:"executed_at"`
}

// detail is a timer as get shows it.
type detail struct {
	ID             string          `json:"id"`
	CreatedAt      instant         `json:"created_at"`
	UpdatedAt      instant         `json:"updated_at"`
	ExecuteAt      instant         `json:"execute_at"`
	CallbackType   string          `json:"callback_type"`
	CallbackConfig callback        `json:"callback_config"`
	Status         string          `json:"status"`
	LastError      *string         `json:"last_error"`
	ExecutedAt     instant         `json:"executed_at"`
	Metadata       json.RawMessage `json:"metadata"`
}

// statuses are the states of messages by the names timers have for them.
var statuses = map[belfry.State]string{
	belfry.Scheduled: "pending",
	belfry.Leased:    "executing",
	belfry.Done:      "completed",
	belfry.Dead:      "failed",
	belfry.Canceled:  "canceled",
}

// summarize shows a timer in short.
func summarize(m *belfry.Message) summary {
	return summary{
		ID: m.ID, CreatedAt: instant(m.CreatedAt), ExecuteAt: instant(m.FireAt), CallbackType: m.Target,
		Status: statuses[m.State], ExecutedAt: executedAt(m),
	}
}

// executedAt is when the callback ended, either way.
func executedAt(m *belfry.Message) instant {
	if m.State == belfry.Done || m.State == belfry.Dead {
		return instant(m.FinishedAt)
	}
	return instant{}
}

// describe shows a timer in full.
func describe(m *belfry.Message) detail {
	k := keptOf(m)
	d := detail{
		ID: m.ID, CreatedAt: instant(m.CreatedAt), UpdatedAt: instant(m.UpdatedAt), ExecuteAt: instant(m.FireAt),
		CallbackType: m.Target, CallbackConfig: callbackOf(m, &k), Status: statuses[m.State], ExecutedAt: executedAt(m), Metadata: k.Metadata,
	}
	if m.LastError != "" {
		d.LastError = &m.LastError
	}
	return d
}

// callbackOf returns a timer's callback. What is kept of it is how it was spelled; what it does is in the message, which the
// native API may have changed or made.
func callbackOf(m *belfry.Message, k *kept) callback {
	c := callback{Type: m.Target, Headers: m.Headers, Payload: payloadOf(m, k)}
	switch m.Target {
	case "http":
		c.URL = &m.Address
		if method, ok := m.Params["method"]; ok {
			c.Method = &method
			if given := k.Callback.Method; given != nil && strings.ToUpper(*given) == method {
				c.Method = given
			}
		}
	case "nats":
		c.Topic = &m.Address
		if key, ok := m.Params["key"]; ok {
			c.Key = &key
		}
	}
	if m.Timeout != 0 {
		text := m.Timeout.String()
		c.Timeout = &text
		if given := k.Callback.Timeout; given != nil {
			if d, err := parseDuration("", *given); err == nil && d == m.Timeout {
				c.Timeout = given
			}
		}
	}
	return c
}

// payloadOf returns a timer's payload as JSON. One that the native API has made of something else is shown as a string: its
// text, or its bytes in base64.
func payloadOf(m *belfry.Message, k *kept) json.RawMessage {
	switch {
	case k.Null && m.Payload == nil:
		return json.RawMessage("null")
	case m.Payload == nil:
		return nil
	case json.Valid(m.Payload) && utf8.Valid(m.Payload):
		return m.Payload
	}
	var shown any = m.Payload
	if utf8.Valid(m.Payload) {
		shown = string(m.Payload)
	}
	text, err := encode(shown)
	if err != nil { // neither a string nor bytes can fail
		return nil
	}
	return text
}

// keptOf returns what the API keeps with a timer. Metadata that it has not written, because the native API has made the
// message, is the timer's own.
func keptOf(m *belfry.Message) kept {
	if m.Metadata == nil {
		return kept{}
	}
	var k struct {
		Callback *json.RawMessage `json:"callback"`
		kept
	}
	decoder := json.NewDecoder(bytes.NewReader(m.Metadata))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&k); err != nil || k.Callback == nil || json.Unmarshal(*k.Callback, &k.kept.Callback) != nil {
		return kept{Metadata: m.Metadata}
	}
	return k.kept
}
