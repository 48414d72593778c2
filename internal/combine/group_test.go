package combine_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfryhq/belfry/internal/combine"
)

// ledger is a writer whose batches take a second of bubble time each; a result is ten times its item.
type ledger struct {
	mu      sync.Mutex
	batches [][]int
	now     int // batches being written
	most    int // the most that were at once
	fail    error
}

func (l *ledger) write(ctx context.Context, items []int) ([]int, error) {
	l.mu.Lock()
	l.batches = append(l.batches, slices.Clone(items))
	l.now++
	l.most = max(l.most, l.now)
	fail := l.fail
	l.mu.Unlock()
	defer func() { l.mu.Lock(); l.now--; l.mu.Unlock() }()
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if fail != nil {
		return nil, fail
	}
	return times10(items), nil
}

func times10(items []int) []int {
	results := make([]int, len(items))
	for i, item := range items {
		results[i] = 10 * item
	}
	return results
}

// answer is what one Do returned, and when.
type answer struct {
	results []int
	err     error
	after   time.Duration
}

// start calls Do in a goroutine of its own and waits until it blocks or has returned, so that calls arrive in order.
func start(ctx context.Context, g *combine.Group[int, int], items ...int) *answer {
	a, began := new(answer), time.Now()
	go func() {
		a.results, a.err = g.Do(ctx, items...)
		a.after = time.Since(began)
	}()
	synctest.Wait()
	return a
}

// pass lets bubble time pass and what is due happen.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func expect(t *testing.T, name string, a *answer, after time.Duration, results ...int) {
	t.Helper()
	if a.err != nil || !slices.Equal(a.results, results) || a.after != after {
		t.Errorf("%s: got %v, %v after %v; want %v after %v", name, a.results, a.err, a.after, results, after)
	}
}

func expectBatches(t *testing.T, l *ledger, want ...[]int) {
	t.Helper()
	if !slices.EqualFunc(l.batches, want, slices.Equal[[]int]) {
		t.Errorf("batches %v, want %v", l.batches, want)
	}
}

func bubble(t *testing.T, limits combine.Limits[int], f func(t *testing.T, l *ledger, g *combine.Group[int, int])) {
	synctest.Test(t, func(t *testing.T) {
		l := new(ledger)
		f(t, l, combine.New(l.write, limits))
	})
}

func TestALoneCallerWaitsForNobody(t *testing.T) {
	bubble(t, combine.Limits[int]{}, func(t *testing.T, l *ledger, g *combine.Group[int, int]) {
		for range 2 {
			a := start(t.Context(), g, 1, 2)
			pass(time.Second)
			expect(t, "lone", a, time.Second, 10, 20)
		}
		expectBatches(t, l, []int{1, 2}, []int{1, 2})
	})
}

func TestNoItemsAreNoBatch(t *testing.T) {
	bubble(t, combine.Limits[int]{}, func(t *testing.T, l *ledger, g *combine.Group[int, int]) {
		expect(t, "none", start(t.Context(), g), 0)
		expectBatches(t, l)
	})
}

func TestWhatArrivesDuringAWriteSharesTheNextInOrder(t *testing.T) {
	bubble(t, combine.Limits[int]{}, func(t *testing.T, l *ledger, g *combine.Group[int, int]) {
		a, b, c, d := start(t.Context(), g, 1), start(t.Context(), g, 2, 3), start(t.Context(), g, 4), start(t.Context(), g, 5)
		pass(time.Second)
		e := start(t.Context(), g, 6)
		pass(2 * time.Second)
		expect(t, "leader returns after its own batch", a, time.Second, 10)
		expect(t, "next leader", b, 2*time.Second, 20, 30)
		expect(t, "follower", c, 2*time.Second, 40)
		expect(t, "last follower", d, 2*time.Second, 50)
		expect(t, "the one after", e, 2*time.Second, 60)
		expectBatches(t, l, []int{1}, []int{2, 3, 4, 5}, []int{6})
	})
}

func TestLimitsSplitTheLineAndOvertakeNobody(t *testing.T) {
	limits := combine.Limits[int]{MaxItems: 3, MaxBytes: 100, Size: func(item int) int { return item }}
	bubble(t, limits, func(t *testing.T, l *ledger, g *combine.Group[int, int]) {
		for _, items := range [][]int{{1}, {2, 3}, {4, 5}, {6}, {90}, {20}, {5}, {500}, {60}, {30}, {20}} {
			start(t.Context(), g, items...)
		}
		pass(time.Minute)
		expectBatches(t, l, []int{1}, []int{2, 3}, []int{4, 5, 6}, []int{90}, []int{20, 5}, []int{500},
			[]int{60, 30}, []int{20})
	})
}

func TestMoreThanABatchMayHoldIsWrittenAsSeveral(t *testing.T) {
	bubble(t, combine.Limits[int]{MaxItems: 2}, func(t *testing.T, l *ledger, g *combine.Group[int, int]) {
		a := start(t.Context(), g, 1, 2, 3, 4, 5)
		b := start(t.Context(), g, 6)
		pass(time.Minute)
		expect(t, "large", a, 4*time.Second, 10, 20, 30, 40, 50)
		expect(t, "small takes its turn", b, 2*time.Second, 60)
		expectBatches(t, l, []int{1, 2}, []int{6}, []int{3, 4}, []int{5})
	})
}

func TestAFailureAfterSomeBatchesComesWithTheirResults(t *testing.T) {
	bubble(t, combine.Limits[int]{MaxItems: 2}, func(t *testing.T, l *ledger, g *combine.Group[int, int]) {
		a := start(t.Context(), g, 1, 2, 3, 4, 5, 6)
		l.mu.Lock()
		l.fail = errors.New("disk full")
		l.mu.Unlock()
		pass(time.Minute)
		if a.err != l.fail || !slices.Equal(a.results, []int{10, 20}) {
			t.Errorf("got %v, %v", a.results, a.err)
		}
		expectBatches(t, l, []int{1, 2}, []int{3, 4})
	})
}

func TestInFlightBatchesAreWrittenAtOnce(t *testing.T) {
	bubble(t, combine.Limits[int]{InFlight: 2}, func(t *testing.T, l *ledger, g *combine.Group[int, int]) {
		a, b, c, d := start(t.Context(), g, 1), start(t.Context(), g, 2), start(t.Context(), g, 3), start(t.Context(), g, 4)
		pass(time.Minute)
		expect(t, "first", a, time.Second, 10)
		expect(t, "second", b, time.Second, 20)
		expect(t, "third", c, 2*time.Second, 30)
		expect(t, "fourth", d, 2*time.Second, 40)
		if l.most != 2 {
			t.Errorf("%d batches at once, want 2", l.most)
		}
		// The slots are free again: two callers need not wait.
		e, f := start(t.Context(), g, 5), start(t.Context(), g, 6)
		pass(time.Minute)
		expect(t, "fifth", e, time.Second, 50)
		expect(t, "sixth", f, time.Second, 60)
	})
}

func TestAnErrorHoldsForItsBatchOnly(t *testing.T) {
	bubble(t, combine.Limits[int]{}, func(t *testing.T, l *ledger, g *combine.Group[int, int]) {
		a := start(t.Context(), g, 1)
		l.mu.Lock()
		l.fail = errors.New("disk full")
		l.mu.Unlock()
		b, c := start(t.Context(), g, 2), start(t.Context(), g, 3)
		pass(time.Second)
		l.mu.Lock()
		fail := l.fail
		l.fail = nil
		l.mu.Unlock()
		d := start(t.Context(), g, 4)
		pass(time.Minute)
		expect(t, "before", a, time.Second, 10)
		for _, got := range []*answer{b, c} {
			if got.err != fail || got.results != nil {
				t.Errorf("in the failed batch: %v, %v", got.results, got.err)
			}
		}
		expect(t, "after", d, 2*time.Second, 40)
	})
}

func TestAWrongNumberOfResultsIsAnErrorForAll(t *testing.T) {
	g := combine.New(func(context.Context, []int) ([]int, error) { return []int{1}, nil }, combine.Limits[int]{})
	if results, err := g.Do(t.Context(), 1, 2); err == nil {
		t.Errorf("got %v", results)
	}
}

func TestResultsOfOneCallerCannotBeAppendedIntoAnothers(t *testing.T) {
	bubble(t, combine.Limits[int]{}, func(t *testing.T, _ *ledger, g *combine.Group[int, int]) {
		start(t.Context(), g, 1)
		b, c, d := start(t.Context(), g, 2), start(t.Context(), g, 3), start(t.Context(), g, 4)
		pass(time.Minute)
		_, _ = append(b.results, 99), append(c.results, 99)
		expect(t, "neighbour", c, 2*time.Second, 30)
		expect(t, "last", d, 2*time.Second, 40)
	})
}
