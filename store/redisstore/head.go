package redisstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/belfryhq/belfry/store"
)

// A head is what scripts read of a message. Numbers are little-endian; instants, versions and counts are doubles, which
// are exact up to 2^53: instants are whole milliseconds, versions are microseconds since 1970 and a few. The beginning
// is what a claim rewrites. Offsets from 0:
//
//	 0 version d · 8 claims d · 16 priority i32 · 20 flags u8 (1 group, 2 parent, 4 dedup key, 8 history, 16 closed gate,
//	   32 body)
//	21 state u8 · 22 stop u8 · 23 VisibleAt d · 31 UpdatedAt d · 39 epoch i64 · 47 owner (length u8, text)
//	   then DueAt, Attempts, FinishedAt, PurgeAt, DedupUntil, FireAt, CreatedAt d · waits u32 · attempts kept u8
//	   kind, group, parent, dedup key (length u8, text) · LastError (length u32, text) · the body if it is small
//
// The state of a trace is 0. lib.lua reads and writes the same.

// unset is how the zero instant is stored: before every other, and exact in a double.
const unset int64 = -1 << 53

// millis returns an instant as it is stored, rounded up, so that nothing is early.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return unset
	}
	return store.Ceil(t).UnixMilli()
}

// floor returns a caller's now as it is stored.
func floor(t time.Time) int64 {
	if t.IsZero() {
		return unset
	}
	return t.UnixMilli()
}

// instant is the opposite of millis.
func instant(ms int64) time.Time {
	if ms == unset {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// parseInstant reads a score.
func parseInstant(text string) (int64, error) {
	if ms, err := strconv.ParseInt(text, 10, 64); err == nil {
		return ms, nil
	}
	f, err := strconv.ParseFloat(text, 64) // Redis writes what is large with an exponent
	return int64(f), err
}

// errTooLong: a name that the contract bounds is longer.
var errTooLong = errors.New("a name is longer than 255 bytes")

// checkNames refuses what a head cannot hold. The contract bounds these texts.
func checkNames(m *store.Message) error {
	for _, name := range []string{m.Queue, m.ID, m.Kind, m.Group, m.Parent, m.DedupKey} {
		if len(name) > math.MaxUint8 {
			return fmt.Errorf("message %q of queue %q: %w", m.ID, m.Queue, errTooLong)
		}
	}
	return nil
}

// appendHead appends the head of a message as it is when somebody puts it or changes it: without a version or a lease.
// created is its CreatedAt, updated its UpdatedAt, history how many attempts it has.
func appendHead(b []byte, m *store.Message, created, updated int64, history int) []byte {
	state, due := m.State, millis(m.DueAt)
	if state == 0 {
		state = store.Scheduled
	}
	if due == unset {
		due = millis(m.FireAt)
	}
	visible := unset
	if state.Live() {
		visible = due
	}
	b = appendDouble(b, 0)
	b = appendDouble(b, int64(m.Claims))
	b = binary.LittleEndian.AppendUint32(b, uint32(m.Priority))
	b = append(b, flags(m, history), byte(state), 0)
	b = appendDouble(b, visible)
	b = appendDouble(b, updated)
	b = append(b, 0, 0, 0, 0, 0, 0, 0, 0, 0) // no epoch, no owner
	b = appendDouble(b, due)
	b = appendDouble(b, int64(m.Attempts))
	b = appendDouble(b, millis(m.FinishedAt))
	b = appendDouble(b, millis(m.PurgeAt))
	b = appendDouble(b, millis(m.DedupUntil))
	b = appendDouble(b, millis(m.FireAt))
	b = appendDouble(b, created)
	b = append(b, 0, 0, 0, 0, byte(history))
	for _, name := range [...]string{m.Kind, m.Group, m.Parent, m.DedupKey} {
		b = append(b, byte(len(name)))
		b = append(b, name...)
	}
	return append(binary.LittleEndian.AppendUint32(b, uint32(len(m.LastError))), m.LastError...)
}

// withBody returns a head with the body of its message after it, if that is live and its body small; else head and body
// apart.
func withBody(head []byte, m *store.Message) (whole, apart []byte) {
	if !m.State.Finished() && len(m.Payload) <= smallBody {
		from := len(head)
		if head = appendBody(head, m); len(head)-from <= smallBody {
			head[20] |= 32
			return head, nil
		}
		head = head[:from]
	}
	return head, appendBody(make([]byte, 0, size(m)), m)
}

func flags(m *store.Message, history int) byte {
	var f byte
	for i, set := range [...]bool{m.Group != "", m.Parent != "", m.DedupKey != "", history > 0} {
		if set {
			f |= 1 << i
		}
	}
	return f
}

func appendDouble(b []byte, n int64) []byte {
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(float64(n)))
}

// readMessage fills in what head and body say; an empty body follows the head. It reports whether the head is a message's,
// and not a trace's, which has no body.
func readMessage(head, body string, m *store.Message) (bool, error) {
	rest, err := readHead(head, m)
	if err != nil || m.State == 0 {
		return false, err
	}
	if body == "" {
		body = rest
	}
	return true, readBody(body, m)
}

// readHead fills in what a head says and returns what follows it.
func readHead(text string, m *store.Message) (string, error) {
	r := reader{text: text}
	m.Version = r.double()
	m.Claims = int(r.double())
	m.Priority = int32(r.uint32())
	r.byte()
	m.State, m.Stop = store.State(r.byte()), r.byte() == 1
	m.VisibleAt, m.UpdatedAt = instant(r.double()), instant(r.double())
	m.Epoch, m.Owner = int64(r.uint64()), r.short()
	m.DueAt, m.Attempts = instant(r.double()), int(r.double())
	m.FinishedAt, m.PurgeAt, m.DedupUntil = instant(r.double()), instant(r.double()), instant(r.double())
	m.FireAt, m.CreatedAt = instant(r.double()), instant(r.double())
	m.Waits = int(r.uint32())
	r.byte()
	m.Kind, m.Group, m.Parent, m.DedupKey = r.short(), r.short(), r.short(), r.short()
	m.LastError = r.take(int(r.uint32()))
	if r.failed {
		return "", fmt.Errorf("message %q of queue %q: its head is broken", m.ID, m.Queue)
	}
	return r.text, nil
}
