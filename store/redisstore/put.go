package redisstore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/belfryhq/belfry/store"
)

// How much one script call takes at most, so that none holds the server up for long.
const (
	maxMessages = 500
	maxBytes    = 1 << 20
)

// The reasons that scripts give; the same as in lib.lua.
const (
	codeOK = iota
	codeExists
	codeDuplicate
	codeInFlight
	codeAborted
	codeLost
	codeMissing
	codeConflict
)

// codes are the errors of the reasons.
var codes = [...]error{
	codeExists: store.ErrExists, codeDuplicate: store.ErrDuplicate, codeInFlight: store.ErrInFlight, codeAborted: store.ErrAborted,
	codeLost: store.ErrLeaseLost, codeMissing: store.ErrNotFound, codeConflict: store.ErrConflict,
}

// codeError returns the error of a reason; nil for codeOK.
func codeError(code int64) error {
	if code < 0 || code >= int64(len(codes)) {
		return fmt.Errorf("a script gave the unknown answer %d", code)
	}
	return codes[code]
}

// The bits of the mode that put.lua takes.
const (
	modeOverwrite = 1 << iota
	modeAtomic
	modeLook
)

// Put accepts messages. Those of one queue are stored by as few script calls as their size allows, in their order.
//
// An atomic batch is one script call, whatever its size. On a Cluster that holds for a batch of one queue; one of several
// is looked at everywhere before the first message is stored, and what another writer makes impossible in between is
// taken back (see atomic.go).
func (s *Store) Put(ctx context.Context, now time.Time, messages []store.Message, mode store.PutMode) ([]store.PutResult, error) {
	for i := range messages {
		if err := checkPut(&messages[i]); err != nil {
			return nil, err
		}
	}
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.exit()
	var results []store.PutResult
	var err error
	if mode&store.Atomic != 0 {
		results, err = s.putAtomic(ctx, now, messages, mode)
	} else {
		results, err = s.put(ctx, now, messages, mode)
	}
	if err != nil {
		return nil, fmt.Errorf("put %d messages: %w", len(messages), err)
	}
	return results, nil
}

// checkPut refuses what no store can hold.
func checkPut(m *store.Message) error {
	if m.State == store.Leased || m.State > store.Canceled {
		return fmt.Errorf("put %q in queue %q: state %v cannot be put", m.ID, m.Queue, m.State)
	}
	return checkNames(m)
}

// put stores messages each for itself.
func (s *Store) put(ctx context.Context, now time.Time, messages []store.Message, mode store.PutMode) ([]store.PutResult, error) {
	p := putting{s: s, now: nowOf(now), results: make([]store.PutResult, len(messages))}
	var calls []*putCall
	open := make(map[string]*putCall, 1)
	for i := range messages {
		m := &messages[i]
		group := s.group(m.Queue)
		c := open[group]
		if c == nil || len(c.at) == maxMessages || c.bytes > 0 && c.bytes+size(m) > maxBytes {
			c = p.call(int(mode) & modeOverwrite)
			open[group] = c
			calls = append(calls, c)
		}
		c.add(s.keys, i, m, p.now.millis)
	}
	if err := p.run(ctx, calls); err != nil {
		return nil, err
	}
	return p.results, nil
}

// size is about how many bytes a message has.
func size(m *store.Message) int { return len(m.Payload) + len(m.Metadata) + len(m.Address) + 300 }

// putting is one Put under way.
type putting struct {
	s       *Store
	now     now
	results []store.PutResult
	opened  []store.QueueHint
}

// putCall is a call of put.lua.
type putCall struct {
	call
	targets
	at    []int // which messages
	bytes int
}

func (p *putting) call(mode int) *putCall {
	return &putCall{call: call{script: p.s.scripts.put, write: true, args: []any{p.now.millis, p.now.micros, mode, 0}}}
}

// add adds a message to the call.
func (c *putCall) add(k keyspace, i int, m *store.Message, now int64) {
	c.at = append(c.at, i)
	c.bytes += size(m)
	c.args = append(c.args, c.number(k, m.Queue))
	c.args = appendMessage(c.args, m, now)
	c.call.keys = c.targets.keys
}

// appendMessage appends what scripts take of a message that is put.
func appendMessage(args []any, m *store.Message, now int64) []any {
	created, visible := millis(m.CreatedAt), millis(m.DueAt)
	if created == unset {
		created = now
	}
	if visible == unset {
		visible = millis(m.FireAt)
	}
	history, kept := appendHistory(nil, m.History)
	head := appendHead(make([]byte, 0, 200+len(m.LastError)), m, created, now, kept)
	body := appendBody(make([]byte, 0, size(m)), m)
	return append(args, m.ID, head, body, visible, millis(m.FireAt), created, extra(history, m.Gate))
}

// extra returns what few messages have: history and gate.
func extra(history []byte, g *store.Gate) any {
	if len(history) == 0 && g == nil {
		return ""
	}
	var ids strings.Builder
	var group string
	if g != nil {
		group = g.Group
		for _, id := range g.IDs {
			if id != "" {
				ids.WriteString(id)
				ids.WriteByte(0)
			}
		}
	}
	var b []byte
	for _, text := range []string{string(history), ids.String(), group} {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(text)))
		b = append(b, text...)
	}
	return b
}

// errUnregistered: the name of a queue is registered again and again, and never found.
var errUnregistered = errors.New("the names of queues vanish: is the server's memory evicted or flushed?")

// run runs calls in their order and reads their answers. Queues that are new are registered first.
func (p *putting) run(ctx context.Context, calls []*putCall) error {
	for range 3 {
		if err := p.register(ctx, calls); err != nil {
			return err
		}
		plain := make([]*call, len(calls))
		for i, c := range calls {
			plain[i] = &c.call
		}
		if err := p.s.run(ctx, plain...); err != nil {
			return err
		}
		var again []*putCall
		for _, c := range calls {
			if n, unregistered := c.reply.(int64); unregistered {
				p.s.known.remove(c.names[n-1])
				again = append(again, c)
			} else if err := p.read(c); err != nil {
				return err
			}
		}
		if calls = again; len(calls) == 0 {
			p.s.tell(ctx, p.opened)
			return nil
		}
	}
	return errUnregistered
}

// register registers the queues of calls.
func (p *putting) register(ctx context.Context, calls []*putCall) error {
	for _, c := range calls {
		fresh, err := p.s.register(ctx, c.names)
		if err != nil {
			return err
		}
		c.args[3] = btoi(fresh)
	}
	return nil
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// read reads the answer of a call.
func (p *putting) read(c *putCall) error {
	answer := c.list()
	if len(answer) != 2 || len(asList(answer[0])) != len(c.at) {
		return fmt.Errorf("script put gave no answer for each message")
	}
	for j, one := range asList(answer[0]) {
		i := c.at[j]
		version, stored := one.(int64)
		if stored {
			p.results[i] = store.PutResult{Version: version}
			continue
		}
		result, err := refusal(asList(one), c.queueOf(j))
		if err != nil {
			return err
		}
		p.results[i] = result
	}
	p.opened = append(p.opened, openedGates(answer[1], c.names)...)
	return nil
}

// queueOf returns the queue of the call's message.
func (c *putCall) queueOf(j int) string { return c.names[c.args[4+8*j].(int)-1] }

// refusal reads why a message was refused.
func refusal(answer []any, queue string) (store.PutResult, error) {
	if len(answer) == 0 {
		return store.PutResult{}, errors.New("script put gave an empty answer")
	}
	result := store.PutResult{Err: codeError(asInt(answer[0]))}
	if len(answer) < 4 {
		return result, nil
	}
	m := store.Message{Queue: queue, ID: asText(answer[1])}
	if known, err := readHead(asText(answer[2]), &m); err != nil {
		return result, err
	} else if !known {
		result.Existing = &store.Message{Queue: queue, ID: m.ID, State: store.Done}
		return result, nil
	}
	if err := readBody(asText(answer[3]), &m); err != nil {
		return result, err
	}
	m.Payload = nil
	result.Existing = &m
	return result, nil
}

// openedGates reads which gates a script has opened.
func openedGates(answer any, queues []string) []store.QueueHint {
	var hints []store.QueueHint
	list := asList(answer)
	for i := 0; i+1 < len(list); i += 2 {
		hints = append(hints, store.QueueHint{Queue: queues[asInt(list[i])-1], At: instant(asInt(list[i+1]))})
	}
	return hints
}
