package redisstore

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/belfryhq/belfry/store"
)

// A body is what only Go reads of a message: four bytes with the length of what follows, then the fields, then the
// payload to the end. Scripts cut the payload off where it is not asked for.
//
// A body begins with its format, so that a later one can have other fields. Texts and lists have their lengths before
// them, lists that may be nil their length plus one, numbers are varints.

// smallBody is how large a body may be that is kept with its head, where it costs no entry of its own but is written again
// with every change; lib.lua has the same.
const smallBody = 1024

// bodyFormat is the format that is written.
const bodyFormat = 1

// The bits of a body's flags.
const (
	hasPayload = 1 << iota // there is one, though it may be empty
	hasRetry               // the retry policy is not zero
	hasRetention
	hasTimes // ExpiresAt or Timeout
)

// appendBody appends the body of a message.
func appendBody(b []byte, m *store.Message) []byte {
	from := len(b)
	b = append(b, 0, 0, 0, 0, bodyFormat)
	mark := len(b)
	b = append(b, 0)
	b = appendString(b, m.Target)
	b = appendString(b, m.Address)
	b = appendString(b, m.ContentType)
	b = appendTexts(b, m.Params)
	b = appendTexts(b, m.Headers)
	b = appendOptional(b, m.Metadata)
	var f byte
	if !m.ExpiresAt.IsZero() || m.Timeout != 0 {
		f |= hasTimes
		b = binary.AppendVarint(b, millis(m.ExpiresAt))
		b = binary.AppendVarint(b, int64(m.Timeout))
	}
	if !isZeroRetry(&m.Retry) {
		f |= hasRetry
		b = appendRetry(b, &m.Retry)
	}
	if m.Retention != (store.Retention{}) {
		f |= hasRetention
		b = binary.AppendVarint(b, int64(m.Retention.Done))
		b = binary.AppendVarint(b, int64(m.Retention.Dead))
	}
	if m.Payload != nil {
		f |= hasPayload
	}
	b[mark] = f
	binary.LittleEndian.PutUint32(b[from:], uint32(len(b)-from-4))
	return append(b, m.Payload...)
}

func isZeroRetry(r *store.Retry) bool {
	return r.MaxAttempts == 0 && r.MaxClaims == 0 && r.MaxAge == 0 && r.Backoff == "" && r.Base == 0 && r.Max == 0 &&
		r.Factor == 0 && r.Delays == nil && r.Jitter == 0 && r.RetryAfterMax == 0
}

func appendRetry(b []byte, r *store.Retry) []byte {
	for _, n := range [...]int64{
		int64(r.MaxAttempts), int64(r.MaxClaims), int64(r.MaxAge), int64(r.Base), int64(r.Max), int64(r.RetryAfterMax),
	} {
		b = binary.AppendVarint(b, n)
	}
	b = appendString(b, string(r.Backoff))
	b = binary.LittleEndian.AppendUint64(b, math.Float64bits(r.Factor))
	b = binary.LittleEndian.AppendUint64(b, math.Float64bits(r.Jitter))
	if r.Delays == nil {
		return append(b, 0)
	}
	b = binary.AppendUvarint(b, uint64(len(r.Delays))+1)
	for _, d := range r.Delays {
		b = binary.AppendVarint(b, int64(d))
	}
	return b
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendOptional(b, value []byte) []byte {
	if value == nil {
		return append(b, 0)
	}
	return append(binary.AppendUvarint(b, uint64(len(value))+1), value...)
}

func appendTexts(b []byte, m map[string]string) []byte {
	if m == nil {
		return append(b, 0)
	}
	b = binary.AppendUvarint(b, uint64(len(m))+1)
	for key, value := range m {
		b = appendString(appendString(b, key), value)
	}
	return b
}

// readBody fills in what a body says.
func readBody(text string, m *store.Message) error {
	r := reader{text: text}
	n := int(r.uint32())
	fields := reader{text: r.take(n)}
	if format := fields.byte(); format != bodyFormat {
		return fmt.Errorf("message %q of queue %q: its body has the format %d, this version reads %d", m.ID, m.Queue, format, bodyFormat)
	}
	f := fields.byte()
	m.Target, m.Address, m.ContentType = fields.string(), fields.string(), fields.string()
	m.Params, m.Headers, m.Metadata = fields.texts(), fields.texts(), fields.optional()
	if f&hasTimes != 0 {
		m.ExpiresAt, m.Timeout = instant(fields.varint()), fields.duration()
	}
	if f&hasRetry != 0 {
		readRetry(&fields, &m.Retry)
	}
	if f&hasRetention != 0 {
		m.Retention = store.Retention{Done: fields.duration(), Dead: fields.duration()}
	}
	if f&hasPayload != 0 {
		m.Payload = append([]byte{}, r.rest()...)
	}
	if r.failed || fields.failed {
		return fmt.Errorf("message %q of queue %q: its body is broken", m.ID, m.Queue)
	}
	return nil
}

func readRetry(r *reader, p *store.Retry) {
	p.MaxAttempts, p.MaxClaims = int(r.varint()), int(r.varint())
	p.MaxAge, p.Base, p.Max, p.RetryAfterMax = r.duration(), r.duration(), r.duration(), r.duration()
	p.Backoff, p.Factor, p.Jitter = store.Backoff(r.string()), r.float(), r.float()
	if n := r.count(); n >= 0 {
		p.Delays = make([]time.Duration, n)
		for i := range p.Delays {
			p.Delays[i] = r.duration()
		}
	}
	p.Delays = slices.Clip(p.Delays)
}
