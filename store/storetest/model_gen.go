package storetest

import (
	"math/rand/v2"
	"time"

	"github.com/belfryhq/belfry/store"
)

// The names of a program are few, so that its operations meet.
var (
	modelQueueNames = []string{"B", "a", "a/b"}
	modelIDs        = []string{"1", "2", "3", "4", "5", "6", "f1", "f2"}
	modelDocNames   = []string{"d", "d/1", "d/2", "e"}
	modelOwners     = []string{"", "n1", "n2"}
)

// modelGen makes programs: the same for the same seed.
type modelGen struct {
	*rand.Rand
	reopens bool
	clock   time.Duration // since start
	latest  time.Duration // the latest that the clock ever showed
	frozen  int           // how many more times the clock shows the same
	fires   []time.Time   // the last FireAt that were given
}

func newModelGen(seed uint64, o Options) *modelGen {
	return &modelGen{Rand: rand.New(rand.NewPCG(seed, 0)), reopens: o.Reopen != nil}
}

// program returns n operations.
func (g *modelGen) program(n int) []modelOp {
	ops := make([]modelOp, n)
	for i := range ops {
		ops[i] = g.op()
	}
	return ops
}

func (g *modelGen) op() modelOp {
	switch n := g.IntN(100); {
	case n < 24:
		return g.put()
	case n < 46:
		return g.claim()
	case n < 66:
		return g.settle()
	case n < 72:
		return g.extend()
	case n < 84:
		return g.replace()
	case n < 86:
		return &modelForfeit{g.now(), pick(g, modelOwners), int64(g.IntN(4))}
	case n < 89:
		return g.purge()
	case n < 93:
		return &modelList{g.query()}
	case n < 95:
		return &modelQueues{g.window()}
	case n < 98:
		return g.doc()
	case n < 99 || !g.reopens:
		return modelAudit{}
	default:
		return modelReopen{}
	}
}

// modelTick divides many instants of a program, so that they are often equal.
const modelTick = 20 * time.Millisecond

// now moves the clock and returns it, mostly not on a whole millisecond.
func (g *modelGen) now() modelNow {
	if g.frozen > 0 {
		g.frozen--
		return modelNow(g.clock)
	}
	switch n := g.IntN(100); {
	case n < 2:
		g.frozen = 30
	case n < 20: // it stands still
	case n < 70:
		g.clock += time.Duration(g.IntN(40)) * time.Millisecond
	case n < 93:
		g.clock = (g.clock + modelTick).Truncate(modelTick)
	case n < 96:
		g.clock += time.Duration(g.IntN(3000)) * time.Millisecond
	default:
		g.clock -= time.Duration(g.IntN(500)) * time.Millisecond
	}
	g.latest = max(g.latest, g.clock)
	return modelNow(g.clock + time.Duration(g.IntN(3))*333*time.Microsecond)
}

// steadyNow returns a now that is not before any other. It serves what a clock that steps back leaves open: who holds a
// dedup key that was free in between, and what a rate allows.
func (g *modelGen) steadyNow() modelNow {
	g.now()
	g.clock = g.latest
	return modelNow(g.latest)
}

// instant returns a whole millisecond about now, often one that others have too.
func (g *modelGen) instant(from, to int) time.Time {
	d := g.clock + time.Duration(from+g.IntN(to-from))*time.Millisecond
	if g.chance(2) {
		d = d.Truncate(modelTick)
	}
	return at(d)
}

func pick[T any](g *modelGen, of []T) T { return of[g.IntN(len(of))] }

// chance is true once in n times.
func (g *modelGen) chance(n int) bool { return g.IntN(n) == 0 }

func (g *modelGen) key() store.Key {
	return store.Key{Queue: pick(g, modelQueueNames), ID: pick(g, modelIDs)}
}

// ref returns a reference to a version, mostly the current one of a message that there is.
func (g *modelGen) ref(leased bool) modelRef {
	ref := modelRef{key: g.key(), leased: leased}
	if !g.chance(6) {
		ref.slot = 1 + g.IntN(100)
	}
	if g.chance(5) {
		ref.back = 1 + g.IntN(3)
	}
	return ref
}
