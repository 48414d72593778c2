package storetest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/belfryhq/belfry/store"
)

// RunModel plays random operations on a store and on a model of it, a few maps that are sorted when an order is asked
// for, and fails at the first answer or content that differs. Ids, queues, keys and groups come from small sets, so that
// they collide; the time stands still, runs ahead and steps back.
//
// The seed is printed; BELFRY_SEED replays one, BELFRY_MODEL_STEPS says how many operations. A run that fails is shrunk
// to the shortest list of operations found that still fails, and printed as a program to read.
func RunModel(t *testing.T, open Opener, o Options) {
	o = o.fromEnvironment()
	seed := modelSetting(t, "BELFRY_SEED", rand.Uint64())
	steps := modelSetting(t, "BELFRY_MODEL_STEPS", uint64(o.Scale.pick(300, 2000, 50_000)))
	t.Logf("BELFRY_SEED=%d BELFRY_MODEL_STEPS=%d", seed, steps)
	ops := newModelGen(seed, o).program(int(steps))
	player := &modelPlayer{t: t, open: open, o: o, patience: 30 * time.Second}
	at, why := player.play(ops)
	if why == "" {
		return
	}
	t.Logf("step %d of %d: %s%s", at+1, len(ops), why, player.stack)
	ops, why = player.shrink(ops[:min(at+1, len(ops))], why)
	t.Fatalf("the store and its model differ: %s\nafter the shortest program found (%d operations):\n%s",
		why, len(ops), modelProgram(ops))
}

// modelSetting returns a number from the environment.
func modelSetting(t *testing.T, name string, otherwise uint64) uint64 {
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s=%q is not a number", name, text)
	}
	return n
}

// modelOp is one operation of a program. It can be played any number of times, on a fresh store each, after any others.
type modelOp interface {
	// play runs the operation on the store and the model and fails the run where they differ.
	play(r *modelRun)
	// simpler returns versions of the operation with less in them.
	simpler() []modelOp
	fmt.Stringer
}

// modelProgram returns operations as text.
func modelProgram(ops []modelOp) string {
	var b strings.Builder
	for i, op := range ops {
		fmt.Fprintf(&b, "%4d  %s\n", i+1, op)
	}
	return b.String()
}

// modelPlayer plays programs, each on a fresh store.
type modelPlayer struct {
	t    *testing.T
	open Opener
	o    Options

	patience time.Duration // how long a failing program is shrunk at most
	stack    string        // of the last panic that was no modelFailure
}

// modelRun is one program under way.
type modelRun struct {
	*modelPlayer
	s store.Store
	m *model
}

// modelFailure is the panic by which an operation ends a run.
type modelFailure string

// play runs the operations and at last compares all contents. It returns why they failed, if they did, and at which.
func (p *modelPlayer) play(ops []modelOp) (at int, why string) {
	r := &modelRun{modelPlayer: p, s: p.open(p.t), m: newModel()}
	defer func() {
		switch f := recover().(type) {
		case nil:
		case modelFailure:
			why = string(f)
		default:
			why, p.stack = fmt.Sprintf("panic: %v", f), "\n"+string(debug.Stack())
		}
		if err := r.s.Close(); err != nil && why == "" {
			why = fmt.Sprintf("Close: %v", err)
		}
	}()
	for at = range ops {
		ops[at].play(r)
		r.verify(r.m.taken()...)
	}
	at = len(ops)
	r.audit()
	return at, ""
}

// fail ends the run.
func (r *modelRun) fail(format string, args ...any) {
	panic(modelFailure(fmt.Sprintf(format, args...)))
}

// must ends the run if a call as a whole failed or gave not as many answers as it was asked for.
func (r *modelRun) must(what string, err error, got, want int) {
	if err != nil {
		r.fail("%s: %v", what, err)
	}
	if got != want {
		r.fail("%s gave %d answers, want %d", what, got, want)
	}
}

// modelNow is an operation's now.
type modelNow time.Duration

func (n modelNow) time() time.Time  { return at(time.Duration(n)) }
func (n modelNow) floor() time.Time { return store.Floor(n.time()) }
func (n modelNow) String() string   { return "now " + modelInstant(n.time()) }
func modelInstant(t time.Time) string {
	switch {
	case t.IsZero():
		return "zero"
	case t.Equal(store.Never):
		return "never"
	default:
		return strings.TrimSuffix(fmt.Sprintf("%+.3f", t.Sub(start).Seconds()*1000), ".000") + "ms"
	}
}
