package combine_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfryhq/belfry/internal/combine"
)

func TestAnEndedContextWritesNothing(t *testing.T) {
	bubble(t, combine.Limits[int]{}, func(t *testing.T, l *ledger, g *combine.Group[int, int]) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := g.Do(ctx, 1); !errors.Is(err, context.Canceled) || !errors.Is(err, combine.ErrUnwritten) {
			t.Errorf("got %v", err)
		}
		expectBatches(t, l)
	})
}

func TestACallerThatLeavesTheLineHasWrittenNothing(t *testing.T) {
	bubble(t, combine.Limits[int]{}, func(t *testing.T, l *ledger, g *combine.Group[int, int]) {
		start(t.Context(), g, 1)
		var left [3]*answer
		var cancels [3]context.CancelFunc
		var stays [2]*answer
		for i := range left { // leavers at the head, in the middle and at the end of the line
			var ctx context.Context
			ctx, cancels[i] = context.WithCancel(t.Context())
			left[i] = start(ctx, g, 100+i)
			if i < len(stays) {
				stays[i] = start(t.Context(), g, 2+i)
			}
		}
		for _, cancel := range cancels {
			cancel()
		}
		synctest.Wait()
		for _, a := range left {
			if !errors.Is(a.err, context.Canceled) || !errors.Is(a.err, combine.ErrUnwritten) || a.after != 0 {
				t.Errorf("left: %v after %v", a.err, a.after)
			}
		}
		pass(time.Minute)
		expect(t, "stays", stays[0], 2*time.Second, 20)
		expect(t, "stays too", stays[1], 2*time.Second, 30)
		expectBatches(t, l, []int{1}, []int{2, 3})
	})
}

func TestACallerLeavesWhileAnotherWritesItsItems(t *testing.T) {
	bubble(t, combine.Limits[int]{}, func(t *testing.T, l *ledger, g *combine.Group[int, int]) {
		start(t.Context(), g, 1)
		b := start(t.Context(), g, 2)
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		c, d := start(ctx, g, 3), start(t.Context(), g, 4)
		pass(time.Minute)
		if c.err != context.DeadlineExceeded || errors.Is(c.err, combine.ErrUnwritten) || c.after != 1500*time.Millisecond {
			t.Errorf("left: %v after %v", c.err, c.after)
		}
		expect(t, "its leader", b, 2*time.Second, 20)
		expect(t, "its neighbour", d, 2*time.Second, 40)
		expectBatches(t, l, []int{1}, []int{2, 3, 4})
	})
}

func TestALeaderWhoseContextEndsFinishesTheBatchAndKnowsTheOutcome(t *testing.T) {
	bubble(t, combine.Limits[int]{}, func(t *testing.T, _ *ledger, g *combine.Group[int, int]) {
		ctx, cancel := context.WithCancel(t.Context())
		a := start(ctx, g, 1)
		cancel()
		pass(time.Minute)
		expect(t, "leader", a, time.Second, 10)
	})
}

func TestABatchEndsAtItsOwnTimeout(t *testing.T) {
	bubble(t, combine.Limits[int]{Timeout: 300 * time.Millisecond}, func(t *testing.T, _ *ledger, g *combine.Group[int, int]) {
		a, b := start(t.Context(), g, 1), start(t.Context(), g, 2)
		pass(time.Minute)
		for i, got := range []*answer{a, b} {
			if !errors.Is(got.err, context.DeadlineExceeded) || got.after != time.Duration(i+1)*300*time.Millisecond {
				t.Errorf("caller %d: %v after %v", i+1, got.err, got.after)
			}
		}
	})
}

type key struct{}

func TestABatchCarriesItsLeadersValues(t *testing.T) {
	g := combine.New(func(ctx context.Context, items []int) ([]int, error) {
		if ctx.Value(key{}) != "trace" {
			t.Errorf("value %v", ctx.Value(key{}))
		}
		return items, nil
	}, combine.Limits[int]{})
	if _, err := g.Do(context.WithValue(t.Context(), key{}, "trace"), 1); err != nil {
		t.Error(err)
	}
}

// TestALeadThatIsHandedToALeaverGoesOn makes the end of a caller's context coincide with its being handed the lead.
func TestALeadThatIsHandedToALeaverGoesOn(t *testing.T) {
	var leftUnwritten atomic.Int64
	for range 200 {
		bubble(t, combine.Limits[int]{}, func(t *testing.T, l *ledger, g *combine.Group[int, int]) {
			start(t.Context(), g, 1)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second) // when the first batch ends
			defer cancel()
			b, c := start(ctx, g, 2), start(t.Context(), g, 3)
			pass(time.Minute)
			expect(t, "the one behind it", c, 2*time.Second, 30)
			if errors.Is(b.err, combine.ErrUnwritten) {
				leftUnwritten.Add(1)
				expectBatches(t, l, []int{1}, []int{3})
			} else {
				expect(t, "the one that came to lead", b, 2*time.Second, 20)
				expectBatches(t, l, []int{1}, []int{2, 3})
			}
		})
	}
	t.Logf("%d of 200 left", leftUnwritten.Load())
}

func TestAPanicOrExitInAWriteWedgesNobody(t *testing.T) {
	for name, end := range map[string]func(){"panic": func() { panic("bug") }, "exit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				broken := false
				g := combine.New(func(_ context.Context, items []int) ([]int, error) {
					time.Sleep(time.Second)
					if broken {
						broken = false
						end()
					}
					broken = items[0] == 1
					return times10(items), nil
				}, combine.Limits[int]{})
				start(t.Context(), g, 1)
				var raised any
				go func() {
					defer func() { raised = recover() }()
					_, _ = g.Do(t.Context(), 2)
				}()
				synctest.Wait()
				follower := start(t.Context(), g, 3)
				pass(1500 * time.Millisecond)
				next := start(t.Context(), g, 4)
				pass(time.Minute)
				if name == "panic" && raised != "bug" {
					t.Errorf("the leader's panic is %v", raised)
				}
				if follower.err != combine.ErrPanic {
					t.Errorf("follower: %v, %v", follower.results, follower.err)
				}
				expect(t, "next", next, 1500*time.Millisecond, 40)
			})
		})
	}
}
