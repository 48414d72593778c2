package storetest

import (
	"time"

	"github.com/belfryhq/belfry/store"
)

func (g *modelGen) put() modelOp {
	op := &modelPut{now: g.now()}
	crowded := g.chance(4)
	for range 1 + g.IntN(5) {
		m := g.message()
		if crowded {
			m.Queue, m.ID, m.DedupKey = modelQueueNames[0], pick(g, modelIDs[:3]), pick(g, []string{"", "x", "y"})
		}
		if g.chance(3) {
			m.CreatedAt = g.instant(-1000, 1)
		}
		if !m.State.Finished() && g.chance(5) {
			m.Gate = g.gate()
		}
		if g.chance(6) {
			m.History = g.history()
		}
		op.messages = append(op.messages, m)
	}
	if g.chance(3) {
		op.mode |= store.Overwrite
	}
	if g.chance(4) {
		op.mode |= store.Atomic
	}
	for i := range op.messages {
		if op.messages[i].DedupKey != "" {
			op.now = g.steadyNow()
		}
	}
	return op
}

func (g *modelGen) claim() modelOp {
	now, limited := g.now(), g.chance(3)
	if limited {
		now = g.steadyNow()
	}
	c := store.Claim{
		Now: now.time(), Until: g.instant(100, 500), Owner: pick(g, modelOwners), Epoch: int64(g.IntN(4)),
	}
	for _, i := range g.Perm(len(modelQueueNames))[:g.IntN(len(modelQueueNames)+1)] {
		qc := store.QueueClaim{Queue: modelQueueNames[i], Limit: g.IntN(5)}
		if g.chance(4) {
			qc.Concurrency = 1 + g.IntN(4)
		}
		if limited {
			qc.Rate = store.Rate{Every: pick(g, []time.Duration{1500 * time.Microsecond, 150 * time.Millisecond, time.Second}), Burst: 1 + g.IntN(3)}
		}
		c.Queues = append(c.Queues, qc)
	}
	for range max(0, g.IntN(8)-4) {
		c.Keys = append(c.Keys, g.key())
	}
	if g.chance(2) {
		c.Ahead = time.Duration(g.IntN(60)) * time.Millisecond
	}
	return &modelClaim{c}
}

func (g *modelGen) settle() modelOp {
	op := &modelSettle{now: g.now()}
	steady := false
	for range 1 + g.IntN(3) {
		op.refs = append(op.refs, g.ref(true))
		s := store.Settlement{
			Outcome: store.Outcome(1 + g.IntN(5)), At: g.instant(-20, 150), PurgeAt: g.purgeAt(), Error: pick(g, []string{"", "failed"}),
		}
		if !g.chance(3) {
			a := g.attempt()
			s.Attempt = &a
		}
		if g.chance(5) {
			content := g.message()
			s.Content, steady = &content, true
		}
		for range max(0, g.IntN(6)-3) {
			f := g.message()
			if g.chance(2) {
				f.ID = pick(g, []string{"f1", "f2"})
			}
			if !f.State.Finished() && g.chance(3) {
				f.Gate = g.gate()
			}
			s.FollowUps, steady = append(s.FollowUps, f), true
		}
		op.settlements = append(op.settlements, s)
	}
	if steady {
		op.now = g.steadyNow()
	}
	return op
}

func (g *modelGen) extend() modelOp {
	op := &modelExtend{now: g.now(), until: g.instant(10, 400)}
	op.until = store.Later(op.until, op.now.floor().Add(time.Millisecond))
	if g.chance(4) {
		op.until = time.Time{} // only asks
	}
	for range 1 + g.IntN(4) {
		op.tokens = append(op.tokens, g.ref(true))
	}
	return op
}

func (g *modelGen) replace() modelOp {
	op := &modelReplace{now: g.steadyNow()}
	for range 1 + g.IntN(3) {
		m := g.message()
		if m.State == 0 {
			m.State = store.Scheduled
		}
		m.DueAt = g.instant(-50, 150)
		mode := pick(g, []store.ChangeMode{store.Swap, store.Swap, store.Revoke, store.Mark})
		op.refs = append(op.refs, g.ref(mode != store.Swap))
		op.changes = append(op.changes, store.Change{Message: m, Mode: mode})
	}
	return op
}

func (g *modelGen) purge() modelOp {
	op := &modelPurge{now: g.now(), limit: g.IntN(5)}
	if g.chance(3) {
		op.now += modelNow(store.TraceTTL)
	}
	return op
}

func (g *modelGen) query() store.Query {
	q := store.Query{
		Order: store.Order(g.IntN(3)), Desc: g.chance(2), Limit: g.IntN(6), Payloads: g.chance(2),
		Kind: pick(g, []string{"", "", "k"}), Parent: pick(g, []string{"", "", "", "p", "1"}), Group: pick(g, []string{"", "", "g"}),
	}
	switch g.IntN(3) {
	case 0:
		q.Queue = pick(g, append(modelQueueNames, "none"))
	case 1:
		q.Prefix = pick(g, []string{"a", "a/", "z"})
	}
	for range g.IntN(3) {
		q.States = append(q.States, store.State(1+g.IntN(int(store.Canceled))))
	}
	if g.chance(3) {
		q.FireMin = g.fired()
	}
	if g.chance(3) {
		q.FireMax = g.fired()
	}
	if g.chance(3) {
		q.Offset = g.IntN(4)
	}
	return q
}

func (g *modelGen) window() store.Window {
	w := store.Window{Prefix: pick(g, []string{"", "a", "a/"}), After: pick(g, []string{"", "", "B", "a"})}
	if g.chance(2) {
		w.Min = g.instant(-100, 100)
	}
	if g.chance(2) {
		w.Max = g.instant(-50, 300)
		w.Limit = g.IntN(3)
	}
	return w
}

func (g *modelGen) doc() modelOp {
	if g.chance(4) {
		return &modelDocs{pick(g, []string{"", "d", "d/"}), pick(g, append(modelDocNames, "")), g.IntN(4)}
	}
	return &modelDoc{
		name: pick(g, modelDocNames), body: pick(g, [][]byte{nil, {}, []byte("text"), {0, 0xff}}),
		back: pick(g, []int{0, 0, 0, 1, 1000}), delete: g.chance(4),
	}
}
