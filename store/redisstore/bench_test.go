package redisstore_test

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/belfryhq/belfry/internal/testserver"
	"github.com/belfryhq/belfry/store"
	"github.com/belfryhq/belfry/store/redisstore"
)

const (
	benchBatch   = 500
	benchCallers = 4
)

// BenchmarkPipeline measures accepting in batches of 500 and burning down in batches of 200, by four callers, messages of
// 256 bytes, beside a bare loop: the same keys and sizes, written with as few plain commands as possible, by a program that
// checks nothing. Both run on a server of their own with appendfsync everysec.
func BenchmarkPipeline(b *testing.B) {
	server := testserver.StartRedis(b, "--appendfsync", "everysec", "--auto-aof-rewrite-percentage", "0")
	client := rawClient(b, server.URL)
	for _, waiting := range []int{0, 100_000} {
		lines := map[string]line{
			"store": storeLine{openURL(b, server.URL, redisstore.Settings{Prefix: prefix()})},
			"bare":  bareLine{client, prefix()},
		}
		for _, name := range []string{"bare", "store"} {
			l := lines[name]
			for i := 0; i < waiting; i += benchBatch {
				if err := l.put(b, typical(i, benchBatch, start.Add(24*time.Hour+time.Duration(i)*time.Millisecond))); err != nil {
					b.Fatal(err)
				}
			}
			b.Run(fmt.Sprintf("waiting=%d/accept/%s", waiting, name), func(b *testing.B) {
				accept(b, l)
				b.StopTimer()
				burn(b, l)
			})
			b.Run(fmt.Sprintf("waiting=%d/burn/%s", waiting, name), func(b *testing.B) {
				accept(b, l)
				b.ResetTimer()
				burn(b, l)
				rate(b)
			})
		}
	}
}

// line is what is measured.
type line interface {
	put(b *testing.B, ms []store.Message) error
	// burn claims some messages and settles them, and returns how many.
	burn(b *testing.B) (int, error)
}

// typical returns a batch of messages.
func typical(from, n int, fire time.Time) []store.Message {
	ms, payload := make([]store.Message, n), make([]byte, 256)
	for i := range ms {
		ms[i] = store.Message{
			Queue: "bench", ID: fmt.Sprintf("0198c0de-0000-7000-%016x", from+i), Kind: "kind", ContentType: "application/json",
			Payload: payload, FireAt: fire,
		}
	}
	return ms
}

var benched int

// accept puts b.N messages, as full batches.
func accept(b *testing.B, l line) {
	batches := make(chan []store.Message, b.N/benchBatch+1)
	for i := 0; i < b.N; i += benchBatch {
		benched += benchBatch
		batches <- typical(1<<40+benched, min(benchBatch, b.N-i), start)
	}
	close(batches)
	b.ResetTimer()
	var group sync.WaitGroup
	for range benchCallers {
		group.Go(func() {
			for ms := range batches {
				if err := l.put(b, ms); err != nil {
					b.Error(err)
				}
			}
		})
	}
	group.Wait()
	rate(b)
}

// burn claims and settles until nothing is due.
func burn(b *testing.B, l line) {
	var group sync.WaitGroup
	for range benchCallers {
		group.Go(func() {
			for {
				n, err := l.burn(b)
				if err != nil {
					b.Error(err)
				}
				if n == 0 {
					return
				}
			}
		})
	}
	group.Wait()
}

func rate(b *testing.B) { b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s") }

// storeLine is the store.
type storeLine struct{ *redisstore.Store }

func (s storeLine) put(b *testing.B, ms []store.Message) error {
	results, err := s.Put(b.Context(), start, ms, 0)
	for _, r := range results {
		err = errors.Join(err, r.Err)
	}
	return err
}

func (s storeLine) burn(b *testing.B) (int, error) {
	got, err := s.Claim(b.Context(), store.Claim{
		Now: start, Until: start.Add(time.Minute), Owner: "node", Epoch: 1, Queues: []store.QueueClaim{{Queue: "bench", Limit: 200}},
	})
	if err != nil || len(got.Messages) == 0 {
		return 0, err
	}
	settlements := make([]store.Settlement, len(got.Messages))
	for i := range settlements {
		settlements[i] = store.Settlement{Token: got.Messages[i].Token(), Outcome: store.OutcomeDone}
	}
	errs, err := s.Settle(b.Context(), start, settlements)
	return len(settlements), errors.Join(append(errs, err)...)
}

// bareLine is the bare loop. Its claims are exclusive because they take ids out of the line.
type bareLine struct {
	*redis.Client
	prefix string
}

func (l bareLine) put(b *testing.B, ms []store.Message) error {
	heads, bodies, visible := []any{}, []any{}, []redis.Z{}
	head, body := make([]byte, 140), make([]byte, 300)
	for i := range ms {
		heads, bodies = append(heads, ms[i].ID, head), append(bodies, ms[i].ID, body)
		visible = append(visible, redis.Z{Score: float64(ms[i].FireAt.UnixMilli()), Member: ms[i].ID})
	}
	pipe := l.Pipeline()
	pipe.HSet(b.Context(), l.prefix+"h", heads...)
	pipe.HSet(b.Context(), l.prefix+"b", bodies...)
	pipe.ZAdd(b.Context(), l.prefix+"z", visible...)
	_, err := pipe.Exec(b.Context())
	return err
}

func (l bareLine) burn(b *testing.B) (int, error) {
	due, err := l.ZPopMin(b.Context(), l.prefix+"z", 200).Result()
	ids, members, leased, heads := []string{}, []any{}, []redis.Z{}, []any{}
	head := make([]byte, 140)
	for _, z := range due {
		if z.Score > float64(start.UnixMilli()) {
			if err := l.ZAdd(b.Context(), l.prefix+"z", z).Err(); err != nil {
				return 0, err
			}
			continue
		}
		id := z.Member.(string)
		ids, members, heads = append(ids, id), append(members, id), append(heads, id, head)
		leased = append(leased, redis.Z{Score: z.Score + 60_000, Member: id})
	}
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	pipe := l.Pipeline()
	pipe.HMGet(b.Context(), l.prefix+"h", ids...)
	pipe.HMGet(b.Context(), l.prefix+"b", ids...)
	pipe.HSet(b.Context(), l.prefix+"h", heads...)
	pipe.ZAdd(b.Context(), l.prefix+"leased", leased...)
	if _, err := pipe.Exec(b.Context()); err != nil {
		return 0, err
	}
	pipe = l.Pipeline()
	pipe.HDel(b.Context(), l.prefix+"h", ids...)
	pipe.HDel(b.Context(), l.prefix+"b", ids...)
	pipe.ZRem(b.Context(), l.prefix+"leased", members...)
	_, err = pipe.Exec(b.Context())
	return len(ids), err
}

// BenchmarkAccept measures accepting one by one, by so many callers, each with a script call of its own; the library's
// group commit makes batches of them.
func BenchmarkAccept(b *testing.B) {
	server := testserver.StartRedis(b, "--appendfsync", "everysec", "--auto-aof-rewrite-percentage", "0")
	for _, callers := range []int{1, 16, 64} {
		b.Run(strconv.Itoa(callers), func(b *testing.B) {
			l := storeLine{openURL(b, server.URL, redisstore.Settings{Prefix: prefix(), Pool: 64})}
			ms := make(chan store.Message, b.N)
			for i := range b.N {
				ms <- typical(i, 1, start)[0]
			}
			close(ms)
			b.ResetTimer()
			var group sync.WaitGroup
			for range callers {
				group.Go(func() {
					for m := range ms {
						if err := l.put(b, []store.Message{m}); err != nil {
							b.Error(err)
						}
					}
				})
			}
			group.Wait()
			rate(b)
		})
	}
}
