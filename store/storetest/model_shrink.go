package storetest

import (
	"reflect"
	"slices"
	"time"

	"github.com/belfryhq/belfry/store"
)

// shrink returns a shorter program that fails too, and why it does: first without chunks of operations, ever smaller
// ones, then with less in each operation, until nothing more can go.
func (p *modelPlayer) shrink(ops []modelOp, why string) ([]modelOp, string) {
	end := time.Now().Add(p.patience)
	try := func(candidate []modelOp) bool {
		if time.Now().After(end) {
			return false
		}
		_, failure := p.play(candidate)
		if failure != "" {
			why = failure
		}
		return failure != ""
	}
	for before := -1; before != modelSize(ops) && time.Now().Before(end); {
		before = modelSize(ops)
		ops = shrinkChunks(ops, try)
		ops = shrinkOps(ops, try)
	}
	return ops, why
}

// modelSize is what shrinking makes smaller.
func modelSize(ops []modelOp) int { return len(modelProgram(ops)) }

// shrinkChunks leaves out operations, half of them at a time, then a quarter, down to one.
func shrinkChunks(ops []modelOp, fails func([]modelOp) bool) []modelOp {
	for size := max(1, len(ops)/2); size > 0; size /= 2 {
		for from := 0; from < len(ops); {
			rest := slices.Concat(ops[:from], ops[min(from+size, len(ops)):])
			if fails(rest) {
				ops = rest
			} else {
				from += size
			}
		}
	}
	return ops
}

// shrinkOps puts simpler operations in the place of each.
func shrinkOps(ops []modelOp, fails func([]modelOp) bool) []modelOp {
	for i := 0; i < len(ops); i++ {
		for simpler := ops[i].simpler(); len(simpler) > 0; simpler = simpler[1:] {
			candidate := slices.Clone(ops)
			candidate[i] = simpler[0]
			if fails(candidate) {
				ops = candidate
				simpler = append([]modelOp{nil}, ops[i].simpler()...)
			}
		}
	}
	return ops
}

// without returns copies of a slice that lack one element each; none when there is but one.
func without[T any](of []T) [][]T {
	if len(of) < 2 {
		return nil
	}
	out := make([][]T, len(of))
	for i := range of {
		out[i] = slices.Concat(of[:i], of[i+1:])
	}
	return out
}

// plainer returns copies of a struct that have the zero value in one field each.
func plainer[T any](of T, but ...string) []T {
	var out []T
	v := reflect.ValueOf(of)
	for i := range v.NumField() {
		if slices.Contains(but, v.Type().Field(i).Name) || v.Field(i).IsZero() {
			continue
		}
		copied := reflect.New(v.Type()).Elem()
		copied.Set(v)
		copied.Field(i).SetZero()
		out = append(out, copied.Interface().(T))
	}
	return out
}

// plainerMessages returns copies of messages of which one lacks a field.
func plainerMessages(of []store.Message) [][]store.Message {
	var out [][]store.Message
	for i := range of {
		for _, m := range plainer(of[i], "Queue", "ID", "FireAt", "State") {
			out = append(out, replacedAt(of, i, m))
		}
		if m := of[i]; m.State.Finished() {
			m.State, m.FinishedAt, m.PurgeAt = 0, time.Time{}, time.Time{}
			out = append(out, replacedAt(of, i, m))
		}
	}
	return out
}

func replacedAt[T any](of []T, i int, by T) []T {
	out := slices.Clone(of)
	out[i] = by
	return out
}

func (op *modelPut) simpler() []modelOp {
	var out []modelOp
	for _, messages := range append(without(op.messages), plainerMessages(op.messages)...) {
		out = append(out, &modelPut{op.now, messages, op.mode})
	}
	for _, mode := range []store.PutMode{0, store.Atomic, store.Overwrite} {
		if mode != op.mode && mode&op.mode == mode {
			out = append(out, &modelPut{op.now, op.messages, mode})
		}
	}
	return out
}

func (op *modelClaim) simpler() []modelOp {
	var out []modelOp
	add := func(c store.Claim) { out = append(out, &modelClaim{c}) }
	for _, c := range plainer(op.claim, "Now", "Until") {
		add(c)
	}
	c := op.claim
	for _, c.Queues = range without(op.claim.Queues) {
		add(c)
	}
	for i, qc := range op.claim.Queues {
		for _, simple := range plainer(qc, "Queue", "Limit") {
			c.Queues = replacedAt(op.claim.Queues, i, simple)
			add(c)
		}
	}
	c = op.claim
	for _, c.Keys = range without(op.claim.Keys) {
		add(c)
	}
	return out
}

func (op *modelSettle) simpler() []modelOp {
	var out []modelOp
	for i := range op.settlements {
		if len(op.settlements) > 1 {
			out = append(out, &modelSettle{op.now, without(op.refs)[i], without(op.settlements)[i]})
		}
		add := func(s store.Settlement) {
			out = append(out, &modelSettle{op.now, op.refs, replacedAt(op.settlements, i, s)})
		}
		for _, s := range plainer(op.settlements[i], "Token", "Outcome", "At") {
			add(s)
		}
		s := op.settlements[i]
		for _, s.FollowUps = range append(without(s.FollowUps), plainerMessages(s.FollowUps)...) {
			add(s)
		}
		s = op.settlements[i]
		if s.Content != nil {
			for _, c := range plainer(*s.Content, "Queue", "ID", "FireAt", "State") {
				s.Content = &c
				add(s)
			}
		}
	}
	return out
}

func (op *modelExtend) simpler() []modelOp {
	var out []modelOp
	for _, tokens := range without(op.tokens) {
		out = append(out, &modelExtend{op.now, tokens, op.until})
	}
	return out
}

func (op *modelReplace) simpler() []modelOp {
	var out []modelOp
	for i := range op.changes {
		if len(op.changes) > 1 {
			out = append(out, &modelReplace{op.now, without(op.refs)[i], without(op.changes)[i]})
		}
		for _, m := range plainer(op.changes[i].Message, "Queue", "ID", "FireAt", "DueAt", "State") {
			out = append(out, &modelReplace{op.now, op.refs, replacedAt(op.changes, i, store.Change{Message: m, Mode: op.changes[i].Mode})})
		}
	}
	return out
}

func (op *modelList) simpler() []modelOp {
	var out []modelOp
	for _, q := range plainer(op.query) {
		out = append(out, &modelList{q})
	}
	return out
}

func (op *modelQueues) simpler() []modelOp {
	var out []modelOp
	for _, w := range plainer(op.window) {
		out = append(out, &modelQueues{w})
	}
	return out
}

func (op *modelForfeit) simpler() []modelOp { return nil }
func (op *modelPurge) simpler() []modelOp   { return nil }
func (op *modelDoc) simpler() []modelOp     { return nil }
func (op *modelDocs) simpler() []modelOp    { return nil }
func (modelAudit) simpler() []modelOp       { return nil }
func (modelReopen) simpler() []modelOp      { return nil }
