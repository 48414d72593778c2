package timers

import (
	"bytes"
	"encoding/json"
	"maps"
	"strings"

	"github.com/belfryhq/belfry"
	"github.com/belfryhq/belfry/target"
)

// backoff reads a backoff's name; an unknown one is refused by the policy's check.
func backoff(name string) belfry.Backoff { return belfry.Backoff(name) }

// setCallback turns a callback into what the message's target needs, and keeps what cannot be derived from that.
func (a *api) setCallback(m *belfry.Message, k *kept, c *callback) error {
	checker, known := a.s.Callbacks[c.Type]
	switch {
	case c.Type != "http" && c.Type != "nats":
		return bad("callback.type %.64q is neither http nor nats", c.Type)
	case !known:
		return bad("callback.type %s cannot be delivered here: no NATS server is configured (set NATS_URL)", c.Type)
	}
	m.Target, m.Params, m.ContentType, m.Timeout, m.Address = c.Type, traceOf(m.Params), "", 0, ""
	set := setHTTP
	if c.Type == "nats" {
		set = setNATS
	}
	if err := set(m, c); err != nil {
		return err
	}
	if c.Timeout != nil {
		d, err := parseDuration("callback.timeout", *c.Timeout)
		if err != nil {
			return err
		}
		if d == 0 {
			return bad("callback.timeout must be longer than zero")
		}
		m.Timeout = d
	}
	m.Headers = c.Headers
	m.Payload, k.Null = c.Payload, string(c.Payload) == "null"
	if k.Null {
		m.Payload = nil
	}
	k.Callback = *c
	k.Callback.Payload = nil
	return check(checker, m)
}

// traceOf returns a copy of the params in which a message's trace travels.
func traceOf(params map[string]string) map[string]string {
	trace := maps.Clone(params)
	maps.DeleteFunc(trace, func(name, _ string) bool { return !strings.HasPrefix(name, target.TracePrefix) })
	return trace
}

func setParam(m *belfry.Message, name, value string) {
	if m.Params == nil {
		m.Params = map[string]string{}
	}
	m.Params[name] = value
}

func setHTTP(m *belfry.Message, c *callback) error {
	if c.Topic != nil || c.Key != nil {
		return bad("callback.topic and callback.key go with type nats")
	}
	if c.URL == nil || *c.URL == "" {
		return bad("callback.url is missing: give an absolute http or https URL")
	}
	m.Address, m.ContentType = *c.URL, "application/json"
	if c.Method != nil {
		setParam(m, "method", strings.ToUpper(*c.Method))
	}
	return nil
}

func setNATS(m *belfry.Message, c *callback) error {
	if c.URL != nil || c.Method != nil {
		return bad("callback.url and callback.method go with type http")
	}
	if c.Topic == nil || *c.Topic == "" {
		return bad("callback.topic is missing: give a NATS subject")
	}
	m.Address = *c.Topic
	if c.Key != nil {
		setParam(m, "key", *c.Key)
	}
	return nil
}

// check asks the target whether it will ever be able to deliver the message.
func check(checker Checker, m *belfry.Message) error {
	if checker == nil {
		return nil
	}
	err := checker.Check(belfry.Delivery{
		Queue: m.Queue, Target: m.Target, Address: m.Address, Params: m.Params, ContentType: m.ContentType,
		Payload: m.Payload, Headers: m.Headers, Timeout: m.Timeout,
	})
	if err != nil {
		return bad("callback: %v", err)
	}
	return nil
}

// encode writes JSON without escaping what only HTML needs escaped.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}
