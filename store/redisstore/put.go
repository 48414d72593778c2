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
	// Several calls of one queue must keep their order even if one is sent again.
	if mode&store.Overwrite == 0 && len(calls) == len(open) {
		for _, c := range calls {
			if c.plain {
				c.script = s.scripts.plain
			}
		}
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
	long    []string // queues whose journals are long
}

// putCall is a call of put.lua.
type putCall struct {
	call
	targets
	at     []int // which messages
	queues []int // the number of the queue of each
	bytes  int
	run    run
	plain  bool // all messages are
}

// run is the last run of messages of one queue and priority in a call.
type run struct {
	queue    int
	priority int32
	count    int // the argument that tells how many they are
	n        int
}

func (p *putting) call(mode int) *putCall {
	return &putCall{plain: true, call: call{script: p.s.scripts.put, write: true, args: []any{p.now.millis, p.now.micros, mode, 0}}}
}

// add adds a message to the call.
func (c *putCall) add(k keyspace, i int, m *store.Message, now int64) {
	queue := c.number(k, m.Queue)
	c.at, c.queues = append(c.at, i), append(c.queues, queue)
	c.bytes += size(m)
	if c.run.n == 0 || c.run.queue != queue || c.run.priority != m.Priority {
		c.args = append(c.args, queue, m.Priority, 0)
		c.run = run{queue: queue, priority: m.Priority, count: len(c.args) - 1}
	}
	c.run.n++
	c.args[c.run.count] = c.run.n
	c.args = appendMessage(c.args, m, now, true)
	c.plain = c.plain && c.args[len(c.args)-1] == ""
	c.call.keys = c.targets.keys
}

// appendMessage appends what scripts take of a message that is put, with its VisibleAt where that is asked for.
func appendMessage(args []any, m *store.Message, now int64, visible bool) []any {
	created, due := millis(m.CreatedAt), millis(m.DueAt)
	if created == unset {
		created = now
	}
	if due == unset {
		due = millis(m.FireAt)
	}
	history, kept := appendHistory(nil, m.History)
	head, body := withBody(appendHead(make([]byte, 0, 250+min(size(m), smallBody)+len(m.LastError)), m, created, now, kept), m)
	args = append(args, m.ID, head, body)
	if visible {
		args = append(args, due)
	}
	return append(args, extra(m, history))
}

// extra returns what few messages have: history and gate. It is empty for a plain message: one that is scheduled and that
// nothing but the indexes of every live message knows of.
func extra(m *store.Message, history []byte) any {
	g := m.Gate
	if len(history) == 0 && g == nil && m.Group == "" && m.Parent == "" && m.DedupKey == "" && !m.State.Finished() {
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
	for try := range 3 {
		// Another caller may register a queue that this one found unregistered, and its script may not have run yet: a
		// second try relies on nobody.
		if err := p.register(ctx, calls, try > 0); err != nil {
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
			if n, undone := c.reply.(int64); undone {
				if c.script = p.s.scripts.put; n > 0 {
					p.s.known.remove(c.names[n-1])
				}
				again = append(again, c)
			} else if err := p.read(c); err != nil {
				return err
			}
		}
		if calls = again; len(calls) == 0 {
			p.s.tell(ctx, p.opened)
			p.s.shorten(ctx, p.long)
			return nil
		}
	}
	return errUnregistered
}

// shorten shortens the journals of queues. What fails is done by a later Put or by who lists.
func (s *Store) shorten(ctx context.Context, queues []string) {
	var calls []*call
	for _, queue := range queues {
		var t targets
		t.number(s.keys, queue)
		calls = append(calls, &call{script: s.scripts.enter, keys: t.keys})
	}
	_ = s.run(ctx, calls...)
}

// register registers the queues of calls.
func (p *putting) register(ctx context.Context, calls []*putCall, all bool) error {
	for _, c := range calls {
		fresh, err := p.s.register(ctx, c.names, all)
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
