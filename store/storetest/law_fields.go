package storetest

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/belfryhq/belfry/store"
)

func fieldLaws() []Law {
	return []Law{
		{"fields/put", "every field of a message comes back as it was put, in every state", fieldsPut},
		{"fields/views", "Claim and List return what Get returns, less history, and payload only where it is asked for", fieldsViews},
		{"fields/bytes", "payload, metadata and response come back byte for byte, and no payload is not an empty one", fieldsBytes},
		{"fields/text", "text comes back byte for byte, whatever characters it has and however long it is", fieldsText},
		{"fields/names", "queues, ids and labels are compared byte for byte", fieldsNames},
		{"fields/instants", "instants are whole milliseconds in UTC, from the year 1 to Never", fieldsInstants},
		{"fields/numbers", "numbers and durations keep their whole range", fieldsNumbers},
		{"fields/given", "no method keeps a reference to its arguments", fieldsGiven},
		{"fields/returned", "no method keeps a reference to what it returned", fieldsReturned},
	}
}

// full returns a message in the state that has every field such a message can have.
func full(queue, id string, state store.State, seed int) store.Message {
	var m store.Message
	fill(&m, seed)
	m.Queue, m.ID, m.State = queue, id, state
	m.PurgeAt = m.PurgeAt.AddDate(1, 0, 0) // later than any now of a law that does not purge
	if state.Live() {
		m.FinishedAt, m.PurgeAt = time.Time{}, time.Time{}
	}
	return m
}

var finished = []store.State{store.Done, store.Dead, store.Canceled}

func fieldsPut(e *env) {
	q := e.name()
	for i, state := range append(finished, store.Scheduled) {
		e.step("%s", state)
		m := full(q, state.String(), state, i+1)
		e.put(start, m)
		e.same(e.get(m.Key()), m, owned...)
	}
}

func fieldsViews(e *env) {
	q := e.name()
	live, done := full(q, "live", store.Scheduled, 1), full(q, "done", store.Done, 2)
	e.put(start, live, done)
	for _, m := range []store.Message{live, done} {
		want := e.get(m.Key())
		query := store.Query{Queue: q, States: []store.State{m.State}}
		e.step("List of %s without payloads", m.ID)
		e.same(only(e, e.list(query).Messages), want, "Payload", "History")
		equal(e, "payload is nil", e.list(query).Messages[0].Payload == nil, true)
		e.step("List of %s with payloads", m.ID)
		query.Payloads = true
		e.same(only(e, e.list(query).Messages), want, "History")
		equal(e, "attempts in History", len(e.list(query).Messages[0].History), 0)
	}
	e.step("Claim")
	got := only(e, e.claim(at(time.Hour), q, 10))
	e.same(got, e.get(live.Key()), "History")
	equal(e, "attempts in History", len(got.History), 0)
	e.same(e.get(live.Key()), live, append(owned, "State", "Claims")...)
}

// only returns the one message of a slice.
func only(e *env, ms []store.Message) store.Message {
	e.Helper()
	if len(ms) != 1 {
		e.fail("got %d messages, want one", len(ms))
	}
	return ms[0]
}

// everyByte has all 256 values; as text it is not UTF-8.
func everyByte() []byte {
	b := make([]byte, 256)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}

func fieldsBytes(e *env) {
	q := e.name()
	large := bytes.Repeat(everyByte(), 4096)
	bodies := map[string][]byte{
		"nil": nil, "empty": {}, "zero byte": {0}, "every byte": everyByte(), "1 MB": large,
		"broken UTF-8": []byte("a\xff\xc3"), "quotes": []byte(`'"\x00`), "blanks": []byte("  \r\n"),
	}
	for name, body := range bodies {
		e.step("%s", name)
		m := e.message(q, name, start)
		m.Payload = body
		m.History = []store.Attempt{{Number: 1, Response: body}}
		if len(body) > 0 {
			m.Metadata = body
		}
		e.put(start, m)
		e.same(e.get(m.Key()), m, append(owned, "DueAt", "State", "CreatedAt")...)
		got := only(e, e.claimKeys(start, m.Key()))
		equal(e, "payload in Claim", string(got.Payload), string(body))
		equal(e, "payload in Claim is nil", got.Payload == nil, body == nil)
	}
}

func fieldsText(e *env) {
	q := e.name()
	long := strings.Repeat("lengthy. ", 8000)
	for i, text := range []string{" a ", "a\r\nb\t", "'; --", `\"{}[]`, "\u00e1 a\u0301 \u202e \U0001f600", "\x01\x7f", long} {
		e.step("%.20q", text)
		m := e.message(q, e.name(), start)
		m.Address, m.ContentType, m.LastError, m.Target = text, text, text, "t"
		m.Headers = map[string]string{"h": text, "Key": "", "key": "lower", " ": " ", "é\n": text}
		m.Params = map[string]string{"p": text, "": "empty"}
		m.History = []store.Attempt{{Number: i + 1, Error: text, Owner: text}}
		e.put(start, m)
		e.same(e.get(m.Key()), m, append(owned, "DueAt", "State", "CreatedAt")...)
	}
}

// names are texts that careless comparison takes for each other, or careless encoding breaks.
var names = []string{
	"a", "A", "a ", "a  ", " a", "a\t", "a\n", "\u00e1", "a\u0301", "\u00e0", "a\u200b", "\u00df", "ss", "SS", "i", "I", "\u0131", "\u0130",
	"0", "00", "-0", "1", "01", "1.0", "1e0", "null", "NULL", "true", "a%", "a_", "a*", "a?", "[a]", "{a}", "{a}b", "a:b", "a/b", "a|b",
	"a\\", "a'", `a"`, "a`", "$a", ".a", "a.b", "\x01", "\x7f", "\uffee", "\U00010000", "\U0010ffff",
	strings.Repeat("\u00fc", 127) + "x", strings.Repeat("\u00fc", 127) + "X", strings.Repeat("\U0001f600", 63) + "abc", strings.Repeat("z", 255),
}

func fieldsNames(e *env) {
	q := e.name()
	var ms []store.Message
	for _, name := range names {
		m := e.message(q, name, start)
		m.Kind, m.Target, m.Group, m.Parent, m.DedupKey = name, name, name, name, name
		ms = append(ms, m, e.message(name, "id", start))
	}
	e.put(start, ms...)
	for _, m := range ms {
		e.step("%q in %q", m.ID, m.Queue)
		e.same(e.get(m.Key()), m, append(owned, "DueAt", "State", "CreatedAt")...)
	}
	for _, name := range names {
		e.step("%q", name)
		for what, query := range map[string]store.Query{
			"queue": {Queue: name}, "kind": {Queue: q, Kind: name}, "group": {Queue: q, Group: name}, "parent": {Queue: q, Parent: name},
		} {
			equal(e, "messages counted by "+what, e.total(query), 1)
		}
		e.ids(e.claim(start, name, 10), "id")
	}
	e.step("order of ids")
	e.ids(e.claim(start, q, 100), slices.Sorted(slices.Values(names))...)
}

// instants are those that careless arithmetic gets wrong.
var instants = []time.Time{
	time.Date(1, 1, 1, 0, 0, 0, 1_000_000, time.UTC),
	time.Date(1582, 10, 15, 0, 0, 0, 0, time.UTC),
	time.Date(1969, 12, 31, 23, 59, 59, 999_000_000, time.UTC),
	time.UnixMilli(0).UTC(),
	time.UnixMilli(1).UTC(),
	time.Date(2038, 1, 19, 3, 14, 8, 0, time.UTC),
	time.Date(2262, 4, 11, 23, 47, 16, 855_000_000, time.UTC),
	time.Date(9999, 12, 31, 23, 59, 59, 999_000_000, time.UTC),
	store.Never,
}

func fieldsInstants(e *env) {
	q := e.name()
	for i, t := range instants {
		e.step("%s", brief(t))
		live := e.message(q, "live", t)
		live.Queue = e.name()
		live.CreatedAt, live.ExpiresAt, live.DedupKey, live.DedupUntil = t, t, "key", t
		live.History = []store.Attempt{{Number: 1, StartedAt: t}}
		done := e.message(q, e.name(), start)
		done.State, done.DueAt, done.FinishedAt, done.PurgeAt = store.Done, t, t, t
		e.put(start, live, done)
		got := e.get(live.Key())
		e.same(got, live, append(owned, "DueAt", "State")...)
		e.instant("VisibleAt", got.VisibleAt, t)
		for _, stored := range []time.Time{got.FireAt, got.VisibleAt, got.UpdatedAt, got.History[0].StartedAt} {
			equal(e, "location", stored.Location(), time.UTC)
		}
		equal(e, "a field that was not set is zero", got.FinishedAt.IsZero() && got.PurgeAt.IsZero(), true)
		e.same(e.get(done.Key()), done, append(owned, "CreatedAt")...)
		equal(e, "messages due", len(e.claim(start, live.Queue, 1)), btoi(i < 5))
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func fieldsNumbers(e *env) {
	q := e.name()
	big, small := e.message(q, "big", start), e.message(q, "small", start)
	big.Priority, small.Priority = math.MaxInt32, math.MinInt32
	big.Timeout, small.Timeout = math.MaxInt64, 1
	big.Attempts, big.Claims = math.MaxInt32, math.MaxInt32
	big.Retry = store.Retry{
		MaxAttempts: math.MaxInt32, MaxClaims: math.MaxInt32, MaxAge: math.MaxInt64 - 1, Base: math.MaxInt64 - 2, Max: math.MaxInt64 - 3,
		Factor: math.MaxFloat64, Delays: []time.Duration{math.MaxInt64 - 4, 1, 0}, Jitter: 1, RetryAfterMax: math.MaxInt64 - 5,
	}
	small.Retry = store.Retry{MaxAttempts: -1, Factor: math.SmallestNonzeroFloat64, Jitter: 0.1, Base: 1, MaxAge: 1<<53 + 1}
	big.Retention = store.Retention{Done: math.MaxInt64, Dead: 1<<53 + 1}
	small.Retention = store.Retention{Done: store.Forever, Dead: 1}
	big.History = []store.Attempt{{Number: math.MaxInt32, Duration: math.MaxInt64, Status: math.MaxInt32}, {Status: -1}}
	e.put(start, big, small)
	for _, m := range []store.Message{big, small} {
		e.same(e.get(m.Key()), m, append(owned, "DueAt", "State", "CreatedAt")...)
	}
}
