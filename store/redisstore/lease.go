package redisstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/belfryhq/belfry/store"
)

// Extend moves the ends of live leases: one script call for each group of queues and a few hundred tokens.
func (s *Store) Extend(ctx context.Context, now time.Time, tokens []store.Token, until time.Time) ([]store.Held, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.exit()
	var end any = ""
	if !until.IsZero() {
		end = millis(until)
	}
	b := batch{s: s, script: s.scripts.extend, head: []any{floor(now), end}, most: maxMessages}
	for i, t := range tokens {
		b.add(i, t.Queue, 0, t.ID, t.Version)
	}
	held := make([]store.Held, len(tokens))
	err := b.run(ctx, func(i int, answer any) error {
		held[i] = store.Held(asInt(answer))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("extend %d leases: %w", len(tokens), err)
	}
	return held, nil
}

// Forfeit ends the leases of the owner's earlier incarnations. It looks at leased messages only, in every queue.
func (s *Store) Forfeit(ctx context.Context, now time.Time, owner string, epoch int64) (int, error) {
	if err := s.enter(ctx); err != nil {
		return 0, err
	}
	defer s.exit()
	n, err := s.forfeit(ctx, floor(now), owner, epoch)
	if err != nil {
		return 0, fmt.Errorf("forfeit the leases of %q: %w", owner, err)
	}
	return n, nil
}

func (s *Store) forfeit(ctx context.Context, now int64, owner string, epoch int64) (int, error) {
	names, err := s.names(ctx, "", "")
	if err != nil {
		return 0, err
	}
	total := 0
	err = s.probe(ctx, names, probe{s.scripts.forfeit, []any{now, owner, epoch}, true}, func(answer any, _ []string) (bool, error) {
		total += int(asInt(answer))
		return true, nil
	})
	return total, err
}

// batch makes calls of a script that takes one element after another and answers each.
type batch struct {
	s      *Store
	script *script
	head   []any // what every call begins with
	most   int   // elements of a call
	opens  bool  // the script tells of gates that opened, too

	calls []*batchCall
	open  map[string]*batchCall
	gates []store.QueueHint // that opened
}

// batchCall is a call of a batch.
type batchCall struct {
	call
	targets
	at    []int // which elements
	bytes int
}

// add adds an element: its queue and what else the script takes of it.
func (b *batch) add(i int, queue string, bytes int, args ...any) {
	group := b.s.group(queue)
	c := b.open[group]
	if c == nil || len(c.at) == b.most || c.bytes > 0 && c.bytes+bytes > maxBytes {
		c = &batchCall{call: call{script: b.script, write: true, args: append([]any{}, b.head...)}}
		if b.open == nil {
			b.open = make(map[string]*batchCall, 1)
		}
		b.open[group], b.calls = c, append(b.calls, c)
	}
	c.at, c.bytes = append(c.at, i), c.bytes+bytes
	c.args = append(append(c.args, c.number(b.s.keys, queue)), args...)
	c.call.keys = c.targets.keys
}

// errBatchAnswer: a script has not answered each element.
var errBatchAnswer = errors.New("the answer has not one part for each element")

// run runs the calls and reads the answer to each element.
func (b *batch) run(ctx context.Context, read func(i int, answer any) error) error {
	plain := make([]*call, len(b.calls))
	for i, c := range b.calls {
		plain[i] = &c.call
	}
	if err := b.s.run(ctx, plain...); err != nil {
		return err
	}
	for _, c := range b.calls {
		answer := c.list()
		if b.opens && len(answer) == 2 {
			b.gates = append(b.gates, openedGates(answer[1], c.names)...)
			answer = asList(answer[0])
		}
		if len(answer) != len(c.at) {
			return fmt.Errorf("script %s: %w", b.script.name, errBatchAnswer)
		}
		for j, one := range answer {
			if err := read(c.at[j], one); err != nil {
				return err
			}
		}
	}
	return nil
}
