package storetest

import (
	"time"

	"github.com/belfryhq/belfry/store"
)

// message returns a message with fields at random, live or not.
func (g *modelGen) message() store.Message {
	key := g.key()
	m := store.Message{
		Queue: key.Queue, ID: key.ID, Kind: pick(g, []string{"", "k", "l"}), FireAt: g.instant(-50, 150),
		Priority: pick(g, []int32{-7, 0, 0, 0, 1, 1 << 30}), Group: pick(g, []string{"", "", "g", "h"}),
		Parent: pick(g, []string{"", "", "", "p"}),
	}
	g.fires = append(g.fires, m.FireAt)
	if g.chance(3) {
		m.DueAt = g.instant(-50, 150)
	}
	if g.chance(3) {
		m.DedupKey = pick(g, []string{"x", "x", "y"})
		if !g.chance(3) {
			m.DedupUntil = g.instant(-20, 250)
		}
	}
	if g.chance(4) {
		g.decorate(&m)
	}
	switch {
	case g.chance(8):
		m.State, m.FinishedAt, m.PurgeAt = pick(g, finished), g.instant(-500, 1), g.purgeAt()
	case g.chance(2):
		m.State = store.Scheduled
	}
	return m
}

// fired returns a FireAt that was given lately.
func (g *modelGen) fired() time.Time {
	if len(g.fires) == 0 {
		return start
	}
	return pick(g, g.fires[max(0, len(g.fires)-100):])
}

// decorate gives a message what stores only keep.
func (g *modelGen) decorate(m *store.Message) {
	n := g.IntN(1000)
	m.Target, m.Address, m.ContentType, m.LastError = "t", "address "+string(rune('a'+n%26)), "text/plain", "as it was"
	m.Params, m.Headers = map[string]string{"p": "q"}, map[string]string{"h": "", "é": string(rune('a' + n%26))}
	m.Payload = pick(g, [][]byte{nil, {}, {0, 0xff, byte(n)}})
	m.Metadata = pick(g, [][]byte{nil, []byte(`{"a": 1}`)})
	m.Timeout, m.Attempts, m.Claims = time.Duration(n), n%5, n%7
	m.Retry = store.Retry{MaxAttempts: n, Backoff: store.List, Delays: []time.Duration{1, time.Duration(n)}, Jitter: 0.5}
	m.Retention = store.Retention{Done: store.Forever, Dead: time.Duration(n)}
	if g.chance(2) {
		m.ExpiresAt = g.instant(0, 1000)
	}
}

func (g *modelGen) gate() *store.Gate {
	gate := &store.Gate{}
	for range g.IntN(4) {
		gate.IDs = append(gate.IDs, pick(g, modelIDs))
	}
	if g.chance(3) {
		gate.Group = pick(g, []string{"g", "h"})
	}
	return gate
}

func (g *modelGen) history() []store.Attempt {
	attempts := make([]store.Attempt, pick(g, []int{1, 2, store.MaxHistory - 1, store.MaxHistory, store.MaxHistory + 2}))
	for i := range attempts {
		attempts[i] = g.attempt()
	}
	return attempts
}

func (g *modelGen) attempt() store.Attempt {
	return store.Attempt{Number: g.IntN(30), StartedAt: g.instant(-50, 1), Error: pick(g, []string{"", "no"}), Owner: pick(g, modelOwners)}
}

// purgeAt returns until when a finished message is kept: not at all, for a while or for ever.
func (g *modelGen) purgeAt() time.Time {
	switch g.IntN(4) {
	case 0:
		return time.Time{}
	case 1:
		return store.Never
	default:
		return g.instant(-100, 2000)
	}
}
