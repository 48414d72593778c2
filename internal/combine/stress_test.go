package combine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belfryhq/belfry/internal/combine"
)

// TestUnderStressEveryItemIsWrittenOnceAndAnsweredByItsOwnResult has callers of every kind at once on real time: many
// items, contexts that end, writes that fail.
func TestUnderStressEveryItemIsWrittenOnceAndAnsweredByItsOwnResult(t *testing.T) {
	for _, inFlight := range []int{1, 3} {
		t.Run(fmt.Sprintf("in flight %d", inFlight), func(t *testing.T) { stress(t, inFlight) })
	}
}

func stress(t *testing.T, inFlight int) {
	const callers, rounds, maxItems = 32, 150, 16
	failed := errors.New("failed")
	var written sync.Map // item → whether its batch succeeded
	var now, calls atomic.Int64
	g := combine.New(func(_ context.Context, items []int) ([]int, error) {
		if n := now.Add(1); n > int64(inFlight) {
			t.Errorf("%d batches at once", n)
		}
		defer now.Add(-1)
		if len(items) > maxItems {
			t.Errorf("a batch of %d", len(items))
		}
		ok := calls.Add(1)%7 != 0
		for _, item := range items {
			if _, twice := written.LoadOrStore(item, ok); twice {
				t.Errorf("item %d written twice", item)
			}
		}
		if !ok {
			return nil, failed
		}
		return times10(items), nil
	}, combine.Limits[int]{MaxItems: maxItems, InFlight: inFlight})

	var wg sync.WaitGroup
	for caller := range callers {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(uint64(caller), 1))
			for round := range rounds {
				items := make([]int, 1+random.IntN(maxItems))
				for i := range items {
					items[i] = (caller*rounds+round)*maxItems + i
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.IntN(200))*time.Microsecond)
				if random.IntN(2) == 0 {
					cancel()
					ctx, cancel = context.WithCancel(t.Context())
				}
				results, err := g.Do(ctx, items...)
				cancel()
				check(t, &written, failed, items, results, err)
			}
		})
	}
	wg.Wait()
}

// check compares what a caller was told with what was written.
func check(t *testing.T, written *sync.Map, failed error, items, results []int, err error) {
	for i, item := range items {
		ok, present := written.Load(item)
		switch {
		case err == nil && (present && ok == true && results[i] == 10*item):
		case err == failed && present && ok == false:
		case errors.Is(err, combine.ErrUnwritten) && !present:
		case errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, combine.ErrUnwritten): // unknown
		default:
			t.Errorf("item %d: told %v, %v; written %v, successfully %v", item, results, err, present, ok)
			return
		}
	}
}

func BenchmarkDo(b *testing.B) {
	for _, callers := range []int{1, 64} {
		b.Run(fmt.Sprintf("callers=%d/write=1ms", callers), func(b *testing.B) {
			var batches atomic.Int64
			g := combine.New(func(_ context.Context, items []int) ([]int, error) {
				batches.Add(1)
				time.Sleep(time.Millisecond)
				return items, nil
			}, combine.Limits[int]{MaxItems: 500})
			var wg sync.WaitGroup
			var left atomic.Int64
			left.Store(int64(b.N))
			for range callers {
				wg.Go(func() {
					for left.Add(-1) >= 0 {
						if _, err := g.Do(b.Context(), 1); err != nil {
							b.Error(err)
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/float64(batches.Load()), "items/batch")
		})
	}
}
