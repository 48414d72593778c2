package sqlstore

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/belfryhq/belfry/store"
)

// details is what nobody searches for and many messages lack, as one JSON document; none at all is an empty text.
type details struct {
	Params  map[string]string `json:"params,omitzero"` // a nil map is left out, an empty one is not
	Headers map[string]string `json:"headers,omitzero"`
	Retry   *store.Retry      `json:"retry,omitempty"`
	Delays  bool              `json:"no_delays,omitempty"` // Retry.Delays is empty but not nil
}

func encodeDetails(m *store.Message) (string, error) {
	d := details{Params: m.Params, Headers: m.Headers}
	if !plainRetry(&m.Retry) {
		d.Retry, d.Delays = &m.Retry, m.Retry.Delays != nil && len(m.Retry.Delays) == 0
	}
	if d.Params == nil && d.Headers == nil && d.Retry == nil {
		return "", nil
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(d); err != nil {
		return "", fmt.Errorf("encode message %q of queue %q: %w", m.ID, m.Queue, err)
	}
	return string(bytes.TrimSuffix(text.Bytes(), []byte("\n"))), nil
}

func plainRetry(r *store.Retry) bool { return reflect.ValueOf(r).Elem().IsZero() }

func decodeDetails(text string, m *store.Message) error {
	if text == "" {
		return nil
	}
	var d details
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		return fmt.Errorf("decode details of message %q of queue %q: %w", m.ID, m.Queue, err)
	}
	m.Params, m.Headers = d.Params, d.Headers
	if d.Retry != nil {
		m.Retry = *d.Retry
		if d.Delays {
			m.Retry.Delays = []time.Duration{}
		}
	}
	return nil
}

func duration(ns int64) time.Duration { return time.Duration(ns) }
