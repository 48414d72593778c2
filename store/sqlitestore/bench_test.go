package sqlitestore

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"zombiezen.com/go/sqlite"

	"github.com/belfryhq/belfry/store"
)

// epoch is the now of every benchmark.
var epoch = time.Date(2031, 3, 4, 5, 6, 7, 0, time.UTC)

// batch is how many messages a call takes.
const batch = 500

// typical returns a batch of messages of 1 KB, due within the spread.
func typical(spread time.Duration) []store.Message {
	messages := make([]store.Message, batch)
	payload := make([]byte, 1024)
	for i := range payload {
		payload[i] = byte(rand.Uint32())
	}
	for i := range messages {
		id, err := uuid.NewV7()
		if err != nil {
			panic(err)
		}
		messages[i] = store.Message{
			Queue: "orders", ID: id.String(), Kind: "email.send", Target: "http", Address: "https://example.com/hook/42",
			ContentType: "application/json", Payload: payload, Retry: store.Retry{MaxAttempts: 5},
			Retention: store.Retention{Done: 24 * time.Hour, Dead: 720 * time.Hour}, FireAt: epoch,
		}
		if spread > 0 {
			messages[i].FireAt = epoch.Add(time.Duration(rand.Int64N(int64(spread)))).Truncate(time.Millisecond)
		}
	}
	return messages
}

// latencies reports what a caller waits.
type latencies []time.Duration

func (l *latencies) since(t time.Time) { *l = append(*l, time.Since(t)) }

func (l latencies) report(b *testing.B, name string) {
	if len(l) == 0 {
		return
	}
	slices.Sort(l)
	b.ReportMetric(float64(l[len(l)/2].Microseconds())/1000, name+"-p50-ms")
	b.ReportMetric(float64(l[len(l)*99/100].Microseconds())/1000, name+"-p99-ms")
}

func perSecond(b *testing.B, n int, d time.Duration, name string) {
	b.ReportMetric(float64(n)/d.Seconds(), name+"/s")
}

var spreads = []struct {
	name   string
	spread time.Duration
}{{"one instant", 0}, {"a day", 24 * time.Hour}}

// filled returns a store in which n messages wait, due within the spread.
func filled(b *testing.B, n int, spread time.Duration) *Store {
	b.Helper()
	path := filepath.Join(b.TempDir(), "bench.db")
	open := func(settings Settings) *Store {
		s, err := Open(b.Context(), path, settings)
		if err != nil {
			b.Fatal(err)
		}
		return s
	}
	if n > 0 {
		s := open(Settings{Synchronous: Normal})
		for range n / batch {
			if _, err := s.Put(b.Context(), epoch, typical(spread), 0); err != nil {
				b.Fatal(err)
			}
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
	s := open(Settings{})
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	})
	return s
}

// BenchmarkPut measures Put of 500 messages beside a bare loop that inserts the same rows into the same tables with the
// same settings.
func BenchmarkPut(b *testing.B) {
	for _, waiting := range []int{0, 1_000_000} {
		for _, over := range spreads {
			name := fmt.Sprintf("waiting=%d/over %s", waiting, over.name)
			b.Run(name+"/bare", func(b *testing.B) {
				s := filled(b, waiting, over.spread)
				benchmarkInserts(b, over.spread, func(ms []store.Message) error { return s.bareInsert(ms) })
			})
			b.Run(name+"/Put", func(b *testing.B) {
				s := filled(b, waiting, over.spread)
				benchmarkInserts(b, over.spread, func(ms []store.Message) error {
					_, err := s.Put(b.Context(), epoch, ms, 0)
					return err
				})
			})
		}
	}
}

// benchmarkInserts measures inserts of batches.
func benchmarkInserts(b *testing.B, spread time.Duration, insert func([]store.Message) error) {
	var l latencies
	var took time.Duration
	n := 0
	for b.Loop() {
		b.StopTimer()
		ms := typical(spread)
		b.StartTimer()
		start := time.Now()
		if err := insert(ms); err != nil {
			b.Fatal(err)
		}
		l.since(start)
		took += time.Since(start)
		n += len(ms)
	}
	perSecond(b, n, took, "messages")
	l.report(b, "batch")
}

// bareInsert is what Put is compared with: prepared statements in one transaction on the writer's connection, with
// SQLite's own checkpoints.
func (s *Store) bareInsert(messages []store.Message) error {
	c := s.writer.conn
	for _, text := range []string{"PRAGMA wal_autocheckpoint = 1000", "BEGIN IMMEDIATE"} {
		if _, err := c.run(text); err != nil {
			return err
		}
	}
	insert, err := c.db.Prepare(bareMessage)
	if err != nil {
		return err
	}
	body, err := c.db.Prepare("INSERT INTO bodies (n, payload) VALUES (?, ?)")
	if err != nil {
		return err
	}
	for i := range messages {
		m := &messages[i]
		n := s.Versions().Next(epoch)
		fire := m.FireAt.UnixMilli()
		for param, v := range []int64{n, n, fire, fire, fire, epoch.UnixMilli(), epoch.UnixMilli(), int64(m.Retention.Done), int64(m.Retention.Dead)} {
			insert.BindInt64(param+1, v)
		}
		for param, v := range []string{m.Queue, m.ID, m.Kind, m.Target, m.Address, m.ContentType, `{"retry":{"attempts":5}}`} {
			insert.BindText(param+10, v)
		}
		body.BindInt64(1, n)
		body.BindBytes(2, m.Payload)
		for _, stmt := range []*sqlite.Stmt{insert, body} {
			if _, err := stmt.Step(); err != nil {
				return err
			}
			if err := stmt.Reset(); err != nil {
				return err
			}
		}
	}
	_, err = c.run("COMMIT")
	return err
}

const bareMessage = `INSERT INTO messages (n, version, visible_at, due_at, fire_at, created_at, updated_at, retain_done, retain_dead,
queue, id, kind, target, address, content_type, details, state, priority, attempts, claims, owner, epoch, stop, waits, watched,
group_name, parent, dedup_key, timeout_ns, last_error, body, history)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1, 0, 0, 0, '', 0, 0, 0, 0, '', '', '', 0, '', 1, '')`

// BenchmarkLife measures claims of 200 due messages and their settlements beside others that wait, and the whole life.
func BenchmarkLife(b *testing.B) {
	for _, waiting := range []int{1000, 100_000, 1_000_000} {
		for _, kept := range []bool{false, true} {
			b.Run(fmt.Sprintf("waiting=%d/kept=%t", waiting, kept), func(b *testing.B) { benchmarkLife(b, waiting, kept) })
		}
	}
}

func benchmarkLife(b *testing.B, waiting int, kept bool) {
	const claimed = 200
	s := filled(b, waiting, 24*time.Hour)
	ctx := b.Context()
	purge := time.Time{}
	if kept {
		purge = epoch.Add(24 * time.Hour)
	}
	var puts, claims, settles latencies
	var put, claim, settle time.Duration
	n := 0
	for b.Loop() {
		b.StopTimer()
		ms := typical(0)[:claimed]
		for i := range ms {
			ms[i].FireAt = epoch.Add(-time.Hour)
		}
		b.StartTimer()
		t0 := time.Now()
		if _, err := s.Put(ctx, epoch, ms, 0); err != nil {
			b.Fatal(err)
		}
		t1 := time.Now()
		got, err := s.Claim(ctx, store.Claim{Now: epoch, Until: epoch.Add(time.Minute), Owner: "node", Queues: []store.QueueClaim{{Queue: "orders", Limit: claimed}}})
		if err != nil || len(got.Messages) != claimed {
			b.Fatalf("claimed %d: %v", len(got.Messages), err)
		}
		t2 := time.Now()
		settlements := make([]store.Settlement, claimed)
		for i := range got.Messages {
			settlements[i] = store.Settlement{Token: got.Messages[i].Token(), Outcome: store.OutcomeDone, PurgeAt: purge,
				Attempt: &store.Attempt{Number: 1, StartedAt: epoch, Duration: time.Millisecond, Status: 200, Owner: "node"}}
		}
		if _, err := s.Settle(ctx, epoch, settlements); err != nil {
			b.Fatal(err)
		}
		settles.since(t2)
		puts, claims = append(puts, t1.Sub(t0)), append(claims, t2.Sub(t1))
		put, claim, settle = put+t1.Sub(t0), claim+t2.Sub(t1), settle+time.Since(t2)
		n += claimed
	}
	perSecond(b, n, put, "put")
	perSecond(b, n, claim, "claim")
	perSecond(b, n, settle, "settle")
	perSecond(b, n, claim+settle, "claim+settle")
	perSecond(b, n, put+claim+settle, "life")
	puts.report(b, "put")
	claims.report(b, "claim")
	settles.report(b, "settle")
}
