package redisstore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/belfryhq/belfry/store"
)

// maxSettlements is how many settlements one script call takes; each is more work than a message that is put.
const maxSettlements = 250

// Settle ends leases: one script call for each group of queues and a few hundred settlements.
//
// On a Cluster follow-ups into other queues cannot be atomic with their settlement. They are put before it, once it is
// known that its token is current: when the settlement then fails after all, the repeated one finds them there.
func (s *Store) Settle(ctx context.Context, now time.Time, settlements []store.Settlement) ([]error, error) {
	for i := range settlements {
		if err := checkSettlement(&settlements[i]); err != nil {
			return nil, err
		}
	}
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.exit()
	p := settling{s: s, at: now, now: nowOf(now), settlements: settlements, errs: make([]error, len(settlements))}
	if err := p.run(ctx); err != nil {
		return nil, fmt.Errorf("settle %d messages: %w", len(settlements), err)
	}
	s.tell(ctx, p.opened)
	return p.errs, nil
}

// checkSettlement refuses what no store can hold.
func checkSettlement(st *store.Settlement) error {
	if st.Content != nil {
		if err := checkNames(st.Content); err != nil {
			return err
		}
	}
	for i := range st.FollowUps {
		if err := checkPut(&st.FollowUps[i]); err != nil {
			return err
		}
	}
	return nil
}

// settling is one Settle under way.
type settling struct {
	s           *Store
	at          time.Time
	now         now
	settlements []store.Settlement
	errs        []error
	opened      []store.QueueHint

	calls []*settleCall // not yet run
	open  map[string]*settleCall
}

// settleCall is a call of settle.lua.
type settleCall struct {
	call
	targets
	at    []int // which settlements
	bytes int
}

// run applies the settlements in their order, as far as it can matter.
func (p *settling) run(ctx context.Context) error {
	for i := range p.settlements {
		st := &p.settlements[i]
		if p.leavesSlot(st) {
			if err := p.flush(ctx); err != nil {
				return err
			}
			if err := p.settleAcross(ctx, i); err != nil {
				return err
			}
			continue
		}
		group := p.s.group(st.Token.Queue)
		c, more := p.open[group], settleSize(st)
		if c == nil || len(c.at) == maxSettlements || c.bytes > 0 && c.bytes+more > maxBytes {
			c = p.call(false)
			if p.open == nil {
				p.open = make(map[string]*settleCall, 1)
			}
			p.open[group], p.calls = c, append(p.calls, c)
		}
		c.bytes += more
		p.add(c, i, st.FollowUps)
	}
	return p.flush(ctx)
}

// settleSize is about how many bytes a settlement has.
func settleSize(st *store.Settlement) int {
	n := 100 + len(st.Error)
	if st.Attempt != nil {
		n += len(st.Attempt.Error) + len(st.Attempt.Response)
	}
	if st.Content != nil {
		n += size(st.Content)
	}
	for i := range st.FollowUps {
		n += size(&st.FollowUps[i])
	}
	return n
}

// leavesSlot reports whether a settlement has follow-ups that its script cannot put.
func (p *settling) leavesSlot(st *store.Settlement) bool {
	for i := range st.FollowUps {
		if p.s.group(st.FollowUps[i].Queue) != p.s.group(st.Token.Queue) {
			return true
		}
	}
	return false
}

// settleAcross applies a settlement with follow-ups in other slots.
func (p *settling) settleAcross(ctx context.Context, i int) error {
	st := &p.settlements[i]
	look := p.call(true)
	p.add(look, i, nil)
	p.calls = []*settleCall{look}
	if err := p.flush(ctx); err != nil || p.errs[i] != nil {
		return err
	}
	var near, far []store.Message
	for _, m := range st.FollowUps {
		if p.s.group(m.Queue) == p.s.group(st.Token.Queue) {
			near = append(near, m)
		} else {
			far = append(far, m)
		}
	}
	if _, err := p.s.put(ctx, p.at, far, 0); err != nil {
		return err
	}
	c := p.call(false)
	p.add(c, i, near)
	p.calls = []*settleCall{c}
	return p.flush(ctx)
}

func (p *settling) call(look bool) *settleCall {
	return &settleCall{call: call{script: p.s.scripts.settle, write: true, args: []any{p.now.millis, p.now.micros, btoi(look), 0}}}
}

// add adds a settlement to a call.
func (p *settling) add(c *settleCall, i int, follow []store.Message) {
	st := &p.settlements[i]
	c.at = append(c.at, i)
	c.args = append(c.args, c.number(p.s.keys, st.Token.Queue), st.Token.ID, st.Token.Version, int(st.Outcome.State()), p.detail(st), len(follow))
	for j := range follow {
		c.args = append(c.args, c.number(p.s.keys, follow[j].Queue))
		c.args = appendMessage(c.args, &follow[j], p.now.millis, false)
	}
	c.call.keys = c.targets.keys
}

// detail returns what few settlements that remove their message have, and all others.
func (p *settling) detail(st *store.Settlement) any {
	removed := st.Outcome.State().Finished() && millis(st.PurgeAt) <= p.now.millis
	if removed && st.Content == nil {
		return "" // nothing that it sets is kept
	}
	var attempt, head, body []byte
	if st.Attempt != nil {
		attempt = appendAttempt(nil, st.Attempt)
	}
	if st.Content != nil {
		head = appendHead(nil, st.Content, unset, p.now.millis, 0)
		body = appendBody(make([]byte, 0, size(st.Content)), st.Content)
	}
	b := make([]byte, 0, 40+len(st.Error)+len(attempt)+len(head)+len(body))
	b = append(b, byte(btoi(st.Outcome == store.OutcomeRelease)))
	b = appendDouble(appendDouble(b, millis(st.At)), millis(st.PurgeAt))
	b = append(binary.LittleEndian.AppendUint32(b, uint32(len(st.Error))), st.Error...)
	for _, part := range [...][]byte{attempt, head, body} {
		b = append(binary.LittleEndian.AppendUint32(b, uint32(len(part))), part...)
	}
	return b
}

// flush runs the calls that were collected. Queues that get follow-ups and are new are registered first.
func (p *settling) flush(ctx context.Context) error {
	calls := p.calls
	p.calls, p.open = nil, nil
	for range 3 {
		if len(calls) == 0 {
			return nil
		}
		plain := make([]*call, len(calls))
		for i, c := range calls {
			plain[i] = &c.call
		}
		if err := p.s.run(ctx, plain...); err != nil {
			return err
		}
		var again []*settleCall
		for _, c := range calls {
			n, unregistered := c.reply.(int64)
			if !unregistered {
				if err := p.read(c); err != nil {
					return err
				}
				continue
			}
			p.s.known.remove(c.names[n-1])
			if _, err := p.s.register(ctx, c.names, true); err != nil {
				return err
			}
			c.args[3] = 1
			again = append(again, c)
		}
		calls = again
	}
	return errUnregistered
}

// read reads the answer of a call.
func (p *settling) read(c *settleCall) error {
	answer := c.list()
	if len(answer) != 2 || len(asList(answer[0])) != len(c.at) {
		return errors.New("script settle gave no answer for each settlement")
	}
	for j, code := range asList(answer[0]) {
		p.errs[c.at[j]] = codeError(asInt(code))
	}
	p.opened = append(p.opened, openedGates(answer[1], c.names)...)
	return nil
}
