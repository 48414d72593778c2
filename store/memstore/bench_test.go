package memstore_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/belfryhq/belfry/store"
	"github.com/belfryhq/belfry/store/memstore"
	"github.com/belfryhq/belfry/store/storetest"
)

// typical returns n messages as a busy server has them: UUID-like ids, a payload, a header, a few instants.
func typical(n, from int, fire func(i int) time.Time) []store.Message {
	messages := make([]store.Message, n)
	for i := range messages {
		messages[i] = store.Message{
			Queue: "q", ID: fmt.Sprintf("0198c0de-%04x-7000-8000-%012x", (from+i)%7919, from+i), Kind: "email.send",
			Target: "http", Address: "https://example.com/hook", ContentType: "application/json",
			Payload: make([]byte, 100), FireAt: fire(i), Retry: store.Retry{MaxAttempts: 5},
		}
	}
	return messages
}

// BenchmarkLife measures a message from Put to its end, in batches, beside others that wait.
func BenchmarkLife(b *testing.B) {
	for _, waiting := range []int{0, 1_000_000} {
		for _, batch := range []int{1, 200} {
			b.Run(fmt.Sprintf("waiting=%d/batch=%d", waiting, batch), func(b *testing.B) { benchmarkLife(b, waiting, batch) })
		}
	}
}

func benchmarkLife(b *testing.B, waiting, batch int) {
	s := memstore.New()
	ctx := b.Context()
	for from := 0; from < waiting; from += 1000 {
		later := typical(1000, from, func(i int) time.Time { return after(time.Hour + time.Duration(from+i)*time.Millisecond) })
		if _, err := s.Put(ctx, epoch, later, 0); err != nil {
			b.Fatal(err)
		}
	}
	var puts, claims, settles time.Duration
	settlements := make([]store.Settlement, 0, batch)
	b.ReportAllocs()
	runtime.GC()
	b.ResetTimer()
	var messages []store.Message
	for from := 0; from < b.N; from += batch {
		if len(messages) < batch {
			b.StopTimer()
			messages = typical(2000, waiting+from, func(int) time.Time { return epoch })
			b.StartTimer()
		}
		t0 := time.Now()
		if _, err := s.Put(ctx, epoch, messages[:batch], 0); err != nil {
			b.Fatal(err)
		}
		messages = messages[batch:]
		t1 := time.Now()
		claimed, err := s.Claim(ctx, store.Claim{
			Now: epoch, Until: after(time.Minute), Owner: "n", Queues: []store.QueueClaim{{Queue: "q", Limit: batch}},
		})
		if err != nil || len(claimed.Messages) == 0 {
			b.Fatalf("claimed %d messages: %v", len(claimed.Messages), err)
		}
		t2 := time.Now()
		settlements = settlements[:0]
		for i := range claimed.Messages {
			settlements = append(settlements, store.Settlement{Token: claimed.Messages[i].Token(), Outcome: store.OutcomeDone})
		}
		if _, err := s.Settle(ctx, epoch, settlements); err != nil {
			b.Fatal(err)
		}
		puts, claims, settles = puts+t1.Sub(t0), claims+t2.Sub(t1), settles+time.Since(t2)
	}
	n := float64(b.N)
	b.ReportMetric(float64(puts.Nanoseconds())/n, "put-ns/msg")
	b.ReportMetric(float64(claims.Nanoseconds())/n, "claim-ns/msg")
	b.ReportMetric(float64(settles.Nanoseconds())/n, "settle-ns/msg")
}

// BenchmarkHold measures what a waiting message costs in memory: all of it, its own text and payload included.
func BenchmarkHold(b *testing.B) {
	const n = 1_000_000
	for b.Loop() {
		before := heap()
		s := memstore.New()
		start := time.Now()
		for from := 0; from < n; from += 1000 {
			batch := typical(1000, from, func(i int) time.Time { return after(time.Duration((from+i)*7919%n) * time.Millisecond) })
			if _, err := s.Put(b.Context(), epoch, batch, 0); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(time.Since(start).Nanoseconds())/n, "put-ns/msg")
		b.ReportMetric(float64(heap()-before)/n, "B/msg")
		runtime.KeepAlive(s)
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func BenchmarkStore(b *testing.B) { storetest.Benchmark(b, open, storetest.Options{}) }
