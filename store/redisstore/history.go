package redisstore

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/belfryhq/belfry/store"
)

// A history is the attempts one after another, oldest first, each with its length in four bytes before it, so that a
// script appends one and drops the oldest without reading them.

// appendAttempt appends an attempt without its length.
func appendAttempt(b []byte, a *store.Attempt) []byte {
	b = binary.AppendVarint(b, int64(a.Number))
	b = binary.AppendVarint(b, floor(a.StartedAt))
	b = binary.AppendVarint(b, int64(a.StartedAt.Nanosecond()%int(time.Millisecond)))
	b = binary.AppendVarint(b, int64(a.Duration))
	b = binary.AppendVarint(b, int64(a.Status))
	b = appendString(b, a.Error)
	b = appendOptional(b, a.Response)
	return appendString(b, a.Owner)
}

// appendHistory appends the last attempts, and returns how many they are.
func appendHistory(b []byte, attempts []store.Attempt) ([]byte, int) {
	attempts = attempts[max(0, len(attempts)-store.MaxHistory):]
	for i := range attempts {
		from := len(b)
		b = appendAttempt(append(b, 0, 0, 0, 0), &attempts[i])
		binary.LittleEndian.PutUint32(b[from:], uint32(len(b)-from-4))
	}
	return b, len(attempts)
}

// readHistory is the opposite of appendHistory.
func readHistory(text string) ([]store.Attempt, error) {
	var attempts []store.Attempt
	for r := (reader{text: text}); len(r.text) > 0; {
		a := reader{text: r.take(int(r.uint32()))}
		attempt := store.Attempt{Number: int(a.varint())}
		attempt.StartedAt = instant(a.varint())
		if nanos := a.varint(); nanos != 0 {
			attempt.StartedAt = attempt.StartedAt.Add(time.Duration(nanos))
		}
		attempt.Duration, attempt.Status = a.duration(), int(a.varint())
		attempt.Error, attempt.Response, attempt.Owner = a.string(), a.optional(), a.string()
		if r.failed || a.failed {
			return nil, errors.New("its history is broken")
		}
		attempts = append(attempts, attempt)
	}
	return attempts, nil
}
