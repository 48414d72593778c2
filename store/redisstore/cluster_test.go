package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/belfryhq/belfry/internal/testserver"
	"github.com/belfryhq/belfry/store"
	"github.com/belfryhq/belfry/store/redisstore"
)

func TestFollowUpsIntoOtherSlots(t *testing.T) {
	t.Parallel()
	s := openURL(t, testserver.RedisCluster(t), redisstore.Settings{})
	mustPut(t, s, start, message("parent", "p", start), message("parent", "stale", start))
	held := claimed(t, s, start, "parent", 2)
	follow := make([]store.Message, 20)
	for i := range follow {
		follow[i] = message(fmt.Sprint("child", i), "f", start)
		follow[i].Parent = "p"
	}
	st := store.Settlement{Token: held[0].Token(), Outcome: store.OutcomeDone, PurgeAt: store.Never, FollowUps: follow}

	stale := store.Settlement{Token: held[1].Token(), Outcome: store.OutcomeDone, FollowUps: []store.Message{message("child0", "of stale", start)}}
	stale.Token.Version--
	errs, err := s.Settle(t.Context(), start, []store.Settlement{stale, st})
	if err != nil || !errors.Is(errs[0], store.ErrLeaseLost) || errs[1] != nil {
		t.Fatalf("Settle gives %v, %v", errs, err)
	}
	if n := total(t, s, store.Query{Prefix: "child"}); n != int64(len(follow)) {
		t.Errorf("%d follow-ups, want %d: a stale settlement puts none", n, len(follow))
	}
	if n := total(t, s, store.Query{Parent: "p"}); n != int64(len(follow)) {
		t.Errorf("%d messages have the parent", n)
	}
}

// The settlement whose answer was lost is repeated; by then its follow-ups are there.
func TestFollowUpsThatAreThereAreLeftAsTheyAre(t *testing.T) {
	t.Parallel()
	s := openURL(t, testserver.RedisCluster(t), redisstore.Settings{})
	mustPut(t, s, start, message("parent", "p", start))
	held := claimed(t, s, start, "parent", 1)
	first, again := message("child", "f", start), message("child", "f", start.Add(time.Hour))
	first.Parent, again.Parent = "p", "p"
	mustPut(t, s, start, first)
	mustSettle(t, s, start, store.Settlement{Token: held[0].Token(), Outcome: store.OutcomeDone, FollowUps: []store.Message{again}})
	if m, err := s.Get(t.Context(), first.Key()); err != nil || !m.FireAt.Equal(start) {
		t.Errorf("the follow-up fires at %v, %v", m.FireAt, err)
	}
}

// Atomic batches over several slots, at once, for the same ids: of each batch all is stored or nothing.
func TestAtomicBatchesOverSlots(t *testing.T) {
	t.Parallel()
	s := openURL(t, testserver.RedisCluster(t), redisstore.Settings{})
	const rounds, callers, queues = 20, 4, 3
	for round := range rounds {
		var wait sync.WaitGroup
		stored := make([]bool, callers)
		for i := range callers {
			wait.Go(func() {
				var ms []store.Message
				for q := range queues {
					m := message(fmt.Sprint("q", q), fmt.Sprint("m", round), start)
					m.Kind = fmt.Sprint("caller", i)
					ms = append(ms, m)
				}
				results, err := s.Put(t.Context(), start, ms, store.Atomic)
				if err != nil {
					t.Error(err)
					return
				}
				stored[i] = results[0].Err == nil
				for _, r := range results {
					if (r.Err == nil) != stored[i] {
						t.Errorf("round %d: the results of one batch are %v", round, results)
					}
				}
			})
		}
		wait.Wait()
		for i := range callers {
			want := int64(0)
			if stored[i] {
				want = 1
			}
			for q := range queues {
				kind := store.Query{Queue: fmt.Sprint("q", q), Kind: fmt.Sprint("caller", i)}
				page, err := s.List(t.Context(), kind)
				if err != nil {
					t.Fatal(err)
				}
				n := int64(0)
				for _, m := range page.Messages {
					if m.ID == fmt.Sprint("m", round) {
						n++
					}
				}
				if n != want {
					t.Errorf("round %d: caller %d, whose batch was stored: %t, has %d messages in queue %d", round, i, stored[i], n, q)
				}
			}
		}
	}
}

// slot is a slot of a cluster of a test's own.
type slot struct {
	t        *testing.T
	number   int64
	from, to *redis.Client
	names    [2]string // of the two nodes
}

// slotOf returns the slot of a queue's keys, to be moved from its master to another.
func slotOf(t *testing.T, c *testserver.Cluster, key string) *slot {
	t.Helper()
	s := &slot{t: t}
	ctx := t.Context()
	for _, n := range c.Nodes {
		node := rawClient(t, n.URL)
		s.number = node.ClusterKeySlot(ctx, key).Val()
		own, err := node.ClusterShards(ctx).Result()
		if err != nil {
			t.Fatal(err)
		}
		name := node.Do(ctx, "CLUSTER", "MYID").Val().(string)
		mine := false
		for _, r := range own {
			if !slices.ContainsFunc(r.Nodes, func(n redis.Node) bool { return n.ID == name && n.Role == "master" }) {
				continue
			}
			for _, part := range r.Slots {
				mine = mine || part.Start <= s.number && s.number <= part.End
			}
		}
		if mine {
			s.from, s.names[0] = node, name
		} else {
			s.to, s.names[1] = node, name
		}
	}
	return s
}

// do runs a command of the move and fails if the node refuses it.
func (s *slot) do(node *redis.Client, args ...any) {
	s.t.Helper()
	if err := node.Do(s.t.Context(), args...).Err(); err != nil {
		s.t.Fatalf("%v: %v", args, err)
	}
}

// begin makes the slot one that is being moved.
func (s *slot) begin() {
	s.t.Helper()
	s.do(s.to, "CLUSTER", "SETSLOT", s.number, "IMPORTING", s.names[0])
	s.do(s.from, "CLUSTER", "SETSLOT", s.number, "MIGRATING", s.names[1])
}

// moveKeys moves keys of the slot.
func (s *slot) moveKeys(keys ...string) {
	s.t.Helper()
	host, port, _ := strings.Cut(s.to.Options().Addr, ":")
	args := []any{"MIGRATE", host, port, "", 0, 5000, "KEYS"}
	for _, key := range keys {
		args = append(args, key)
	}
	s.do(s.from, args...)
}

// end gives the slot to its new master.
func (s *slot) end() {
	s.t.Helper()
	s.do(s.to, "CLUSTER", "SETSLOT", s.number, "NODE", s.names[1])
	s.do(s.from, "CLUSTER", "SETSLOT", s.number, "NODE", s.names[1])
}

func TestAQueueWhoseSlotIsMoved(t *testing.T) {
	t.Parallel()
	cluster := testserver.StartRedisCluster(t, 0)
	s := openURL(t, cluster.URL, redisstore.Settings{Prefix: "p"})
	mustPut(t, s, start, messages("q", 10, start)...)
	held := claimed(t, s, start, "q", 3)
	slot := slotOf(t, cluster, "p{:q}:h")

	slot.begin()
	slot.moveKeys("p{:q}:c", "p{:q}:f", "p{:q}:q")
	refused := map[string]func() error{
		"Put": func() error {
			m := message("q", "during", start)
			m.Priority = 77 // a key that is nowhere
			_, err := s.Put(t.Context(), start, []store.Message{m}, 0)
			return err
		},
		"Claim": func() error {
			_, err := s.Claim(t.Context(), store.Claim{Now: start, Until: start.Add(time.Hour), Queues: []store.QueueClaim{{Queue: "q", Limit: 5}}})
			return err
		},
		"Settle": func() error {
			_, err := s.Settle(t.Context(), start, []store.Settlement{{Token: held[0].Token(), Outcome: store.OutcomeDone}})
			return err
		},
	}
	for name, call := range refused {
		if err := call(); err == nil {
			t.Errorf("%s is answered while the slot's keys are in two places", name)
		}
	}
	slot.moveKeys(slot.from.ClusterGetKeysInSlot(t.Context(), int(slot.number), 1000).Val()...)
	for name, call := range refused {
		if err := call(); err == nil {
			t.Errorf("%s is answered before the slot has its new master", name)
		}
	}
	slot.end()

	if n := total(t, s, store.Query{Queue: "q"}); n != 10 {
		t.Errorf("%d messages are there after the move, want the 10 from before it", n)
	}
	mustSettle(t, s, start, store.Settlement{Token: held[0].Token(), Outcome: store.OutcomeDone})
	mustPut(t, s, start, message("q", "during", start)) // what was refused has left nothing
	if n := len(claimed(t, s, start, "q", 100)); n != 8 {
		t.Errorf("%d messages are claimed after the move, want 8", n)
	}
}

func TestAClusterGoesOnWhenAMasterIsKilled(t *testing.T) {
	t.Parallel()
	cluster := testserver.StartRedisCluster(t, 1)
	s := openURL(t, cluster.URL, redisstore.Settings{Prefix: "p", WaitReplicas: 1, WaitTimeout: 5 * time.Second})
	accepted := 0
	put := func(i int) error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		results, err := s.Put(ctx, start, []store.Message{message(fmt.Sprint("q", i), "m", start)}, 0)
		if err == nil && (results[0].Err == nil || errors.Is(results[0].Err, store.ErrExists)) {
			accepted++
			return nil
		}
		return errors.Join(err, errors.New("not accepted"))
	}
	for i := range 60 {
		if err := put(i); err != nil {
			t.Fatal(err)
		}
	}
	if err := cluster.Nodes[0].Kill(); err != nil {
		t.Fatal(err)
	}
	// The killed master's replica takes over, but has no replica of its own then.
	patient := openLater(t, cluster.URL, redisstore.Settings{Prefix: "p"})
	await(t, 30*time.Second, func() error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		n, err := patient.Count(ctx, store.Query{})
		if err == nil && n != int64(accepted) {
			t.Fatalf("%d messages are there, %d were accepted", n, accepted)
		}
		return err
	})
	await(t, 10*time.Second, func() error {
		for i := range 60 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_, err := patient.Put(ctx, start, []store.Message{message(fmt.Sprint("q", i), "after", start)}, 0)
			cancel()
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// openLater opens a store on servers of which some may be down yet.
func openLater(t *testing.T, url string, settings redisstore.Settings) *redisstore.Store {
	t.Helper()
	var s *redisstore.Store
	await(t, 30*time.Second, func() (err error) {
		s, err = redisstore.Open(t.Context(), url, settings)
		return err
	})
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// await calls f until it returns nil.
func await(t *testing.T, within time.Duration, f func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	for {
		err := f()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("still failing after %v: %v", within, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
