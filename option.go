package belfry

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/belfryhq/belfry/store"
)

// Option sets one property of a message that is being scheduled.
type Option func(*Draft)

// Draft is a message in the making: a kind, a payload and options, whose instant may still be relative to the accept.
// Compose makes one; Client.ScheduleAll accepts many.
type Draft struct {
	message   Message
	in        time.Duration // FireAt is this long after the accept, unless it is set
	dedupFor  time.Duration
	retention *Retention // nil: the client's default
	err       error
}

// Compose makes a draft. The payload is taken as it is when it is a []byte or json.RawMessage, is absent when it is nil,
// and is marshaled as JSON otherwise.
func Compose(kind string, payload any, options ...Option) Draft {
	d := Draft{message: Message{Kind: kind}}
	d.message.Payload, d.message.ContentType, d.err = encodePayload(payload)
	for _, option := range options {
		option(&d)
	}
	return d
}

// encodePayload returns the payload's bytes and, where it was JSON, its media type.
func encodePayload(payload any) (data []byte, contentType string, err error) {
	switch p := payload.(type) {
	case nil:
		return nil, "", nil
	case []byte:
		return p, "", nil
	case json.RawMessage:
		return p, "application/json", nil
	}
	data, err = json.Marshal(payload)
	if err != nil {
		return nil, "", fmt.Errorf("invalid payload of type %T: %w", payload, err)
	}
	return data, "application/json", nil
}

// At sets the instant of delivery. It is rounded up to the millisecond; an instant in the past is due now.
func At(instant time.Time) Option {
	return func(d *Draft) { d.message.FireAt = store.Ceil(instant) }
}

// In sets the instant of delivery to a while after the accept. Zero and less: now.
func In(delay time.Duration) Option {
	return func(d *Draft) { d.in, d.message.FireAt = delay, time.Time{} }
}

// ID sets the message's id, unique within its queue; without it the message gets a UUIDv7.
func ID(id string) Option { return func(d *Draft) { d.message.ID = id } }

// Queue sets the queue; without it the message goes to DefaultQueue. A queue needs no declaration.
func Queue(name string) Option { return func(d *Draft) { d.message.Queue = name } }

// Priority sets the priority among due messages of the queue: lower first, zero by default.
func Priority(p int32) Option { return func(d *Draft) { d.message.Priority = p } }

// DedupKey makes the message the only live one of its queue with this key: while it is live, scheduling another yields
// ErrDuplicate and the first message.
func DedupKey(key string) Option { return func(d *Draft) { d.message.DedupKey = key } }

// DedupFor holds the dedup key for a while after FireAt even when the message is finished.
func DedupFor(window time.Duration) Option { return func(d *Draft) { d.dedupFor = window } }

// Retry sets the retry policy; its zero fields are those of the client's default.
func Retry(policy RetryPolicy) Option { return func(d *Draft) { d.message.Retry = policy } }

// MaxAttempts sets how many deliveries with a known outcome there are at most; negative: no limit.
func MaxAttempts(n int) Option { return func(d *Draft) { d.message.Retry.MaxAttempts = n } }

// Keep sets how long the message is kept when it is finished; zero durations: not at all, Forever: until it is removed.
func Keep(r Retention) Option { return func(d *Draft) { d.retention = &r } }

// Group labels the message; groups are counted, listed and waited for (AfterGroup).
func Group(name string) Option { return func(d *Draft) { d.message.Group = name } }

// AfterGroup lets the message wait, besides its instant, for the messages of its queue that have the group label and are
// live when it is accepted.
func AfterGroup(name string) Option {
	return func(d *Draft) { d.gate().Group = name }
}

// After lets the message wait, besides its instant, for those of the ids in its queue that are live when it is accepted.
func After(ids ...string) Option {
	return func(d *Draft) { g := d.gate(); g.IDs = append(g.IDs, ids...) }
}

func (d *Draft) gate() *store.Gate {
	if d.message.Gate == nil {
		d.message.Gate = &store.Gate{}
	}
	return d.message.Gate
}

// Headers adds headers that are delivered with the message.
func Headers(headers map[string]string) Option {
	return func(d *Draft) {
		for name, value := range headers {
			Header(name, value)(d)
		}
	}
}

// Header adds one header that is delivered with the message.
func Header(name, value string) Option {
	return func(d *Draft) {
		if d.message.Headers == nil {
			d.message.Headers = map[string]string{}
		}
		d.message.Headers[name] = value
	}
}

// Metadata attaches a JSON document that stays with the message and is not delivered to other systems.
func Metadata(document []byte) Option { return func(d *Draft) { d.message.Metadata = document } }

// ExpiresAt sets the instant from which on the message is not delivered any more; it is then dead with the error "expired".
func ExpiresAt(instant time.Time) Option { return func(d *Draft) { d.message.ExpiresAt = instant } }

// Timeout bounds each delivery.
func Timeout(d time.Duration) Option { return func(m *Draft) { m.message.Timeout = d } }

// To sends the message to an address of a target, by the name the target has in the worker's settings. Without it the
// worker's Mux handles the message by its kind.
func To(targetName, address string) Option {
	return func(d *Draft) { d.message.Target, d.message.Address = targetName, address }
}

// Param sets one setting of the delivery in the target's terms, e.g. "method" of the HTTP target.
func Param(name, value string) Option {
	return func(d *Draft) {
		if d.message.Params == nil {
			d.message.Params = map[string]string{}
		}
		d.message.Params[name] = value
	}
}

// ContentType sets the payload's media type; without it a payload that was marshaled is application/json.
func ContentType(mediaType string) Option {
	return func(d *Draft) { d.message.ContentType = mediaType }
}
