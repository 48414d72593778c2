package storetest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belfryhq/belfry/store"
)

// Benchmark measures a store: accepting messages one by one, by 16 and 64 callers at once and in batches of 500,
// claiming and settling in batches of 200, and listing a page of 100, each while other messages wait in the queue:
// 1,000 at the scale Small, also 100,000 at Normal, also 1,000,000 at Full. One operation is one message, except for
// the list, where it is a page. Messages carry 1 KB.
func Benchmark(b *testing.B, open Opener, o Options) {
	o = o.fromEnvironment()
	for _, waiting := range []int{1000, 100_000, 1_000_000}[:o.Scale.pick(1, 2, 3)] {
		b.Run(fmt.Sprintf("waiting=%d", waiting), func(b *testing.B) {
			f := &benched{s: open(b)}
			f.wait(b, waiting)
			b.Run("accept/callers=1", func(b *testing.B) { f.accept(b, 1, 1) })
			b.Run("accept/callers=16", func(b *testing.B) { f.accept(b, 16, 1) })
			b.Run("accept/callers=64", func(b *testing.B) { f.accept(b, 64, 1) })
			b.Run("accept/batch=500", func(b *testing.B) { f.accept(b, 1, 500) })
			b.Run("claim+settle/batch=200", func(b *testing.B) { f.claimAndSettle(b, 200) })
			b.Run("list/page=100", func(b *testing.B) { f.list(b, 100) })
		})
	}
}

// benched is a store that is measured.
type benched struct {
	s    store.Store
	last atomic.Int64 // the number of the last message
}

// benchQueue is the queue that everything is in.
const benchQueue = "bench"

// messages returns n messages with ids that nobody has.
func (f *benched) messages(n, size int, fire time.Time) []store.Message {
	ms := make([]store.Message, n)
	payload := make([]byte, size)
	for i := range ms {
		ms[i] = store.Message{
			Queue: benchQueue, ID: fmt.Sprintf("0198c0de-0000-7000-8000-%012x", f.last.Add(1)), Kind: "kind",
			ContentType: "application/json", Payload: payload, FireAt: fire,
		}
	}
	return ms
}

// wait puts n messages that are not due while anything is measured.
func (f *benched) wait(b *testing.B, n int) {
	b.Helper()
	for from := 0; from < n; from += 1000 {
		ms := f.messages(min(1000, n-from), 100, at(0))
		for i := range ms {
			ms[i].FireAt = at(24*time.Hour + time.Duration(from+i)*time.Millisecond)
		}
		if err := f.put(b, ms); err != nil {
			b.Fatal(err)
		}
	}
}

// put stores messages that must all be accepted.
func (f *benched) put(b *testing.B, ms []store.Message) error {
	res, err := f.s.Put(b.Context(), start, ms, 0)
	for _, r := range res {
		err = errors.Join(err, r.Err)
	}
	return err
}

// accept measures Put by callers at once, each with a batch of messages at a time.
func (f *benched) accept(b *testing.B, callers, batch int) {
	ms := f.messages(b.N, 1024, start)
	var next atomic.Int64
	errs := make([]error, callers)
	b.ResetTimer()
	var group sync.WaitGroup
	for i := range callers {
		group.Go(func() {
			for errs[i] == nil {
				from := int(next.Add(int64(batch))) - batch
				if from >= len(ms) {
					return
				}
				errs[i] = f.put(b, ms[from:min(from+batch, len(ms))])
			}
		})
	}
	group.Wait()
	f.report(b, b.N)
	if err := errors.Join(errs...); err != nil {
		b.Fatal(err)
	}
	f.drain(b, len(ms), 1000)
}

// claimAndSettle measures Claim and Settle of messages that are due.
func (f *benched) claimAndSettle(b *testing.B, batch int) {
	for from := 0; from < b.N; from += 1000 {
		if err := f.put(b, f.messages(min(1000, b.N-from), 1024, start)); err != nil {
			b.Fatal(err)
		}
	}
	b.ResetTimer()
	f.drain(b, b.N, batch)
	f.report(b, b.N)
}

// drain claims and settles the n messages that are due.
func (f *benched) drain(b *testing.B, n, batch int) {
	b.Helper()
	for done := 0; done < n; {
		got, err := f.s.Claim(b.Context(), store.Claim{
			Now: start, Until: at(lease), Owner: "node", Epoch: 1, Queues: []store.QueueClaim{{Queue: benchQueue, Limit: batch}},
		})
		if err != nil || len(got.Messages) == 0 {
			b.Fatalf("claimed %d messages, %d settled of %d: %v", len(got.Messages), done, n, err)
		}
		settlements := make([]store.Settlement, len(got.Messages))
		for i, m := range got.Messages {
			settlements[i] = store.Settlement{Token: m.Token(), Outcome: store.OutcomeDone}
		}
		errs, err := f.s.Settle(b.Context(), start, settlements)
		if err = errors.Join(append(errs, err)...); err != nil {
			b.Fatal(err)
		}
		done += len(settlements)
	}
}

// list measures pages, one after another to the end and again from the beginning.
func (f *benched) list(b *testing.B, limit int) {
	query := store.Query{Queue: benchQueue, States: []store.State{store.Scheduled}, Order: store.ByFireAt, Limit: limit}
	listed := 0
	b.ResetTimer()
	for range b.N {
		page, err := f.s.List(b.Context(), query)
		if err != nil {
			b.Fatal(err)
		}
		listed += len(page.Messages)
		query.Cursor = page.Next
	}
	f.report(b, listed)
}

// report stops the clock and tells how many messages a second were done.
func (f *benched) report(b *testing.B, messages int) {
	b.StopTimer()
	b.ReportMetric(float64(messages)/b.Elapsed().Seconds(), "messages/s")
}
