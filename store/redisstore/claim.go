package redisstore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/belfryhq/belfry/store"
)

const (
	claimBytes  = 4 << 20 // one call takes no further message once it has so many bytes
	claimQueues = 100     // queues of one call
)

// Claim takes leases: one script call for each group of queues, more where a call's bounds cut it short, all in one
// pipeline per round.
func (s *Store) Claim(ctx context.Context, claim store.Claim) (store.Claimed, error) {
	if len(claim.Owner) > 255 {
		return store.Claimed{}, fmt.Errorf("claim as %q: %w", claim.Owner, errTooLong)
	}
	if err := s.enter(ctx); err != nil {
		return store.Claimed{}, err
	}
	defer s.exit()
	c := newClaiming(s, &claim)
	if err := c.run(ctx); err != nil {
		return store.Claimed{}, fmt.Errorf("claim from %d queues: %w", len(claim.Queues), err)
	}
	return c.claimed(), nil
}

// claiming is one Claim under way.
type claiming struct {
	s       *Store
	claim   *store.Claim
	head    []any             // what every call begins with
	byKey   []store.Message   // what was leased by address
	byQueue [][]store.Message // what was leased from each queue
	next    []store.QueueNext
	left    []int // how many more are wanted of each queue

	storeNow time.Time
	revision *call
}

func newClaiming(s *Store, claim *store.Claim) *claiming {
	n := nowOf(claim.Now)
	horizon := n.millis
	if claim.Ahead > 0 {
		horizon = max(horizon, floor(claim.Now.Add(claim.Ahead)))
	}
	epoch := binary.LittleEndian.AppendUint64(nil, uint64(claim.Epoch))
	c := &claiming{
		s: s, claim: claim, byQueue: make([][]store.Message, len(claim.Queues)), next: make([]store.QueueNext, len(claim.Queues)),
		left: make([]int, len(claim.Queues)),
		head: []any{n.millis, n.micros, horizon, millis(claim.Until), epoch, claim.Owner, claimBytes},
	}
	for i := range claim.Queues {
		c.left[i] = max(0, claim.Queues[i].Limit)
	}
	return c
}

// claimCall is a call of claim.lua.
type claimCall struct {
	call
	targets
	wants   []want
	claimed int // how many it may give
}

// want is a queue of a call and how many messages it asks for.
type want struct{ queue, limit int }

// run claims until every queue has given what it can.
func (c *claiming) run(ctx context.Context) error {
	_, _, revision := c.s.keys.docs()
	c.revision = &call{args: []any{"get", revision}}
	plain, first := []*call{c.revision}, c.keyCalls()
	todo := make([]int, len(c.claim.Queues))
	for i := range todo {
		todo[i] = i
	}
	for round := 0; round == 0 || len(todo) > 0; round++ {
		calls := append(first, c.queueCalls(todo)...)
		for _, one := range calls {
			plain = append(plain, &one.call)
		}
		if err := c.s.run(ctx, plain...); err != nil {
			return err
		}
		todo = todo[:0]
		for _, one := range calls {
			again, err := c.read(one)
			if err != nil {
				return err
			}
			todo = append(todo, again...)
		}
		plain, first = nil, nil
	}
	return nil
}

// keyCalls returns calls that claim by address.
func (c *claiming) keyCalls() []*claimCall {
	var calls []*claimCall
	open := make(map[string]*claimCall)
	for _, key := range c.claim.Keys {
		group := c.s.group(key.Queue)
		one := open[group]
		if one == nil || one.claimed == maxMessages {
			one = &claimCall{call: call{script: c.s.scripts.claim, write: true, args: append(append([]any{}, c.head...), 0)}}
			open[group] = one
			calls = append(calls, one)
		}
		one.claimed++
		one.args[len(c.head)] = one.claimed
		one.args = append(one.args, one.number(c.s.keys, key.Queue), key.ID)
		one.call.keys = one.targets.keys
	}
	return calls
}

// queueCalls returns calls that claim from queues.
func (c *claiming) queueCalls(todo []int) []*claimCall {
	var calls []*claimCall
	var one *claimCall
	for _, i := range todo {
		q, limit := &c.claim.Queues[i], min(c.left[i], maxMessages)
		if one == nil || c.s.cluster != nil || len(one.wants) == claimQueues || one.claimed+limit > 2*maxMessages {
			one = &claimCall{call: call{script: c.s.scripts.claim, write: true, args: append(append([]any{}, c.head...), 0)}}
			calls = append(calls, one)
		}
		var every int64
		if q.Rate.Every > 0 {
			every = max(1, q.Rate.Every.Microseconds())
		}
		one.wants = append(one.wants, want{i, limit})
		one.claimed += limit
		one.args = append(one.args, one.number(c.s.keys, q.Queue), limit, max(0, q.Concurrency), every, q.Rate.Burst)
		one.call.keys = one.targets.keys
	}
	return calls
}

// errClaimAnswer: a script's answer has not the form that it should.
var errClaimAnswer = errors.New("script claim gave an answer of another form")

// read reads the answer of a call. It returns the queues to go on with.
func (c *claiming) read(one *claimCall) ([]int, error) {
	answer := one.list()
	if len(answer) != 4 || len(asList(answer[0])) != 2 || len(asList(answer[2])) != 5*len(one.wants) {
		return nil, errClaimAnswer
	}
	c.storeNow = serverTime(asList(answer[0]))
	messages, told, keyed := asList(answer[1]), asList(answer[2]), asList(answer[3])
	for i := 0; i+3 < len(keyed); i += 4 {
		more, err := readClaimed(nil, keyed[i+1:i+4], one.names[asInt(keyed[i])-1])
		if err != nil {
			return nil, err
		}
		c.byKey = append(c.byKey, more...)
	}
	var again []int
	for j, w := range one.wants {
		n := int(asInt(told[5*j]))
		if 3*n > len(messages) {
			return nil, errClaimAnswer
		}
		var err error
		if c.byQueue[w.queue], err = readClaimed(c.byQueue[w.queue], messages[:3*n], c.claim.Queues[w.queue].Queue); err != nil {
			return nil, err
		}
		messages = messages[3*n:]
		c.left[w.queue] -= n
		c.tell(w.queue, told[5*j+1:])
		cut := asInt(told[5*j+4]) == 1
		if c.left[w.queue] > 0 && (cut || w.limit == maxMessages && n == w.limit) {
			again = append(again, w.queue)
		}
	}
	return again, nil
}

// tell notes what is left in a queue.
func (c *claiming) tell(queue int, told []any) {
	next := store.QueueNext{Next: instant(asInt(told[0])), Limited: asInt(told[1]) == 1}
	if free := asInt(told[2]); next.Limited && free != 0 {
		next.FreeAt = store.Ceil(time.UnixMicro(free))
	}
	c.next[queue] = next
}

// readClaimed appends messages of a queue of which it is given ids, heads and bodies.
func readClaimed(messages []store.Message, list []any, queue string) ([]store.Message, error) {
	messages = slices.Grow(messages, len(list)/3)
	for i := 0; i+2 < len(list); i += 3 {
		messages = append(messages, store.Message{Queue: queue, ID: asText(list[i])})
		m := &messages[len(messages)-1]
		if _, err := readMessage(asText(list[i+1]), asText(list[i+2]), m); err != nil {
			return nil, err
		}
	}
	return messages, nil
}

// claimed returns what the claim came to.
func (c *claiming) claimed() store.Claimed {
	got := store.Claimed{Messages: c.byKey, StoreNow: c.storeNow}
	for _, some := range c.byQueue {
		if got.Messages == nil {
			got.Messages = some
		} else {
			got.Messages = append(got.Messages, some...)
		}
	}
	if len(c.next) > 0 {
		got.Queues = c.next
	}
	got.Revision, _ = strconv.ParseInt(asText(c.revision.reply), 10, 64)
	return got
}

// serverTime reads the answer of TIME: seconds and microseconds.
func serverTime(answer []any) time.Time {
	seconds, _ := strconv.ParseInt(asText(answer[0]), 10, 64)
	micros, _ := strconv.ParseInt(asText(answer[1]), 10, 64)
	return time.Unix(seconds, micros*1000).UTC()
}
