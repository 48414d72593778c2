package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/belfryhq/belfry/store"
)

// Batcher is a DB that runs several queries in one transaction and one round trip. With one, and a dialect that has the
// queries for it, what is simple is done a batch at a time; the rest goes the general way.
type Batcher interface {
	// Batch runs the steps and commits. It returns ErrRefused, with nothing done, when a query divides by zero.
	Batch(ctx context.Context, steps []Step) error
}

// Step is a query of a Batch. Its arguments may also be slices: []int64, []string, [][]byte or []sql.NullInt64. Row gets each
// row of the result; after a Batch that ran again because another transaction was in its way, it gets them again, and Begin
// is called before.
type Step struct {
	Query *Query
	Args  []any
	Begin func()
	Row   func(Row) error
}

// ErrRefused is what a Batch returns when one of its queries undid it.
var ErrRefused = errors.New("the batch refused itself")

// batch runs steps. An error is wrapped once, with what was tried.
func (s *Store) batch(ctx context.Context, what string, steps ...Step) error {
	if err := s.batcher.Batch(ctx, steps); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// arrays returns the records' columns as arrays.
func arrays(records []*record) []any {
	var columns [recordWidth]any
	for i, r := range records {
		for c, p := range r.pointers() {
			switch v := p.(type) {
			case *int64:
				columns[c] = appended(columns[c], *v, i, len(records))
			case *string:
				columns[c] = appended(columns[c], *v, i, len(records))
			case *[]byte:
				columns[c] = appended(columns[c], *v, i, len(records))
			case *sql.NullInt64:
				columns[c] = appended(columns[c], *v, i, len(records))
			}
		}
	}
	return columns[:]
}

// appended adds a value to an array that is made with the first one.
func appended[T any](to any, v T, i, n int) any {
	if i == 0 {
		to = make([]T, n)
	}
	to.([]T)[i] = v
	return to
}

// quick reports whether the batch can be stored by one statement: new live messages without gates, each id once.
func (p *put) quick() bool {
	seen := make(map[store.Key]struct{}, len(p.records))
	for i, r := range p.records {
		key := store.Key{Queue: r.queue, ID: r.id}
		if _, twice := seen[key]; twice || !r.live() || p.gates[i] != nil {
			return false
		}
		seen[key] = struct{}{}
	}
	return p.mode == 0 && len(p.records) > 0
}

// putSet stores what it can of a quick batch and returns the places of what is left: what was refused, for whatever reason.
func (s *Store) putSet(ctx context.Context, now time.Time, p *put) (left []int, err error) {
	w := &work{Store: s, ctx: ctx, now: floor(now), time: now}
	if err := w.numberBy(p.records, func() (first int64, err error) {
		err = s.batch(ctx, "put", Step{Query: s.q.rows, Row: func(r Row) error { return r.Scan(&first) }})
		return first, err
	}); err != nil {
		return nil, err
	}
	for _, r := range p.records {
		p.stamp(w, r, r.version)
	}
	columns := arrays(p.records)
	stored := make(map[int64]struct{}, len(p.records))
	insert := Step{Query: s.q.insertSet, Args: append(columns, w.now), Begin: func() { clear(stored) }, Row: func(row Row) error {
		var n int64
		err := row.Scan(&n)
		stored[n] = struct{}{}
		return err
	}}
	check := Step{Query: s.q.checkSet, Args: []any{columns[column("queue")], columns[column("id")], columns[column("dedup_key")], w.now}}
	steps := []Step{insert, check}
	value, raise := s.newMark()
	if raise {
		steps = append(steps, Step{Query: s.q.raiseVersion, Args: []any{value}})
	}
	err = s.batch(ctx, "put", steps...)
	if err == nil && raise {
		s.marked.Store(value)
	}
	if errors.Is(err, ErrRefused) {
		clear(stored)
		err = nil
	}
	for i, r := range p.records {
		if _, ok := stored[r.n]; !ok {
			left = append(left, i)
		}
	}
	return left, err
}

// column returns the place of a record's column.
func column(name string) int { return slices.Index(recordColumns, name) }

// part returns a put of some of the messages, and what takes its outcome over.
func (p *put) part(places []int) (some *put, merge func()) {
	some = &put{mode: p.mode, load: p.load, records: make([]*record, len(places)), gates: make([]*store.Gate, len(places))}
	for i, at := range places {
		some.records[i], some.gates[i] = p.records[at], p.gates[at]
	}
	return some, func() {
		for i, at := range places {
			p.errs[at], p.existing[at] = some.errs[i], some.existing[i]
		}
	}
}

// quick reports whether the claim can be made by one batch.
func (c *Claiming) quick() bool {
	return len(c.claim.Keys) == 0 && !slices.ContainsFunc(c.claim.Queues, func(q store.QueueClaim) bool {
		return q.Concurrency > 0 || q.Rate.Every > 0
	})
}

// set claims from all queues, and remembers where to begin the next time where that matters.
func (c *Claiming) set() error {
	begin := time.Now()
	c.looking = make([]*looking, len(c.claim.Queues))
	for i := range c.looking {
		c.looking[i] = c.starts.begin(c.claim.Queues[i].Queue)
	}
	err := c.steps()
	took := time.Since(begin)
	patience := slowClaim + time.Duration(len(c.looking))*slowQueue + time.Duration(len(c.taken))*slowMessage
	for i, l := range c.looking {
		var found []line
		if err == nil {
			found = c.found[i]
		}
		c.starts.end(c.claim.Queues[i].Queue, l, found, c.now, took, err == nil && (took > patience || c.starts.always))
	}
	return err
}

// steps claims in one batch; much from one queue in several at once, since that is work which a server's cores can share:
// together they take what one would have taken.
func (c *Claiming) steps() error {
	parts := 1
	if len(c.claim.Queues) == 1 {
		parts = min(mostParts, max(1, c.claim.Queues[0].Limit/leastPart))
	}
	if parts == 1 {
		return c.batch(c.ctx, "claim", append(append([]Step{{Query: c.q.claimBegin}}, c.takes(1)...), c.ends()...)...)
	}
	var wait sync.WaitGroup
	others := make([]*Claiming, parts)
	errs := make([]error, parts)
	for i := range others {
		others[i] = &Claiming{work: c.work, claim: c.claim, until: c.until, horizon: c.horizon, looking: c.looking}
		wait.Go(func() {
			errs[i] = c.batch(c.ctx, "claim", append([]Step{{Query: c.q.claimBegin}}, others[i].takes(parts)...)...)
		})
	}
	wait.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, other := range others {
		c.taken = append(c.taken, other.taken...)
	}
	slices.SortStableFunc(c.taken, func(a, b *record) int {
		return a.claimedBefore(b)
	})
	return c.batch(c.ctx, "claim", c.ends()...)
}

// mostParts is how many connections a claim takes at most.
const mostParts = 4

// leastPart is how many messages a part of a claim is worth a connection for.
const leastPart = 100

// takes are the steps that take messages, in one of so many parts.
func (c *Claiming) takes(parts int) []Step {
	steps := make([]Step, 0, len(c.claim.Queues)+1)
	for i := range c.claim.Queues {
		q := &c.claim.Queues[i]
		if q.Limit <= 0 {
			continue
		}
		begin := func() {}
		if len(steps) == 0 {
			begin = func() { c.taken = nil }
		}
		step := Step{Query: c.q.claimSet, Begin: begin, Row: c.take,
			Args: []any{q.Queue, int64((q.Limit + parts - 1) / parts), c.now, c.horizon, c.until, c.claim.Owner, c.claim.Epoch}}
		if l := c.looking[i]; l != nil && !l.full {
			priorities, since := l.arrays()
			step.Query, step.Args = c.q.claimFrom, append(step.Args, priorities, since)
		}
		steps = append(steps, step)
	}
	return steps
}

// ends are the steps that tell what is left.
func (c *Claiming) ends() []Step {
	c.next = make([]store.QueueNext, len(c.claim.Queues))
	c.found = make([][]line, len(c.claim.Queues))
	steps := make([]Step, 0, len(c.claim.Queues)+1)
	for i := range c.claim.Queues {
		steps = append(steps, c.left(i))
	}
	return append(steps, Step{Query: c.q.claimEnd, Row: c.end})
}

// left is the step that tells what is left of a queue, and of each priority where that is remembered.
func (c *Claiming) left(i int) Step {
	queue, l, next := c.claim.Queues[i].Queue, c.looking[i], &c.next[i].Next
	begin := func() { c.found[i], *next = []line{}, store.Never }
	if l == nil {
		return Step{Query: c.q.next, Args: []any{queue}, Begin: begin, Row: func(r Row) error {
			var first sql.NullInt64
			err := r.Scan(&first)
			if first.Valid {
				*next = instant(first.Int64)
			}
			return err
		}}
	}
	step := Step{Query: c.q.priorities, Args: []any{queue}, Begin: begin, Row: func(r Row) error {
		var priority int64
		var first sql.NullInt64
		err := r.Scan(&priority, &first)
		if !first.Valid {
			first.Int64 = never
		}
		c.found[i] = append(c.found[i], line{priority, first.Int64})
		*next = store.Earlier(*next, instant(first.Int64))
		return err
	}}
	if !l.full {
		priorities, since := l.arrays()
		step.Query, step.Args = c.q.nextFrom, append(step.Args, priorities, since)
	}
	return step
}

// take reads a message that was leased, and its place in the order of claims.
func (c *Claiming) take(row Row) error {
	r := &record{}
	if err := row.Scan(append(r.columns(bareWidth+1), &r.order.ahead, &r.order.visibleAt)...); err != nil {
		return err
	}
	c.versions.Saw(r.version)
	c.taken = append(c.taken, r)
	return nil
}

// end reads what a claim tells beside messages.
func (c *Claiming) end(row Row) error {
	var now int64
	err := row.Scan(&c.revision, &now)
	c.storeNow = time.UnixMicro(now).UTC()
	return err
}

// claimedBefore compares records by the order in which they are claimed: what is due by priority, then what is ahead of its
// time, each by the instant at which it was visible and by id.
func (r *record) claimedBefore(other *record) int {
	a, b := r.order, other.order
	byPriority := 0
	if a.ahead == 0 {
		byPriority = cmp.Compare(r.priority, other.priority)
	}
	return cmp.Or(cmp.Compare(a.ahead, b.ahead), byPriority, cmp.Compare(a.visibleAt, b.visibleAt), cmp.Compare(r.id, other.id))
}

// quick reports whether the settlements can be applied by one statement: each message once, and nothing but its own.
func (b *settling) quick() bool {
	seen := make(map[store.Key]struct{}, len(b.items))
	for i := range b.items {
		key := store.Key{Queue: b.items[i].Token.Queue, ID: b.items[i].Token.ID}
		if _, twice := seen[key]; twice || !b.items[i].simple() {
			return false
		}
		seen[key] = struct{}{}
	}
	return len(b.items) > 0
}

// settleSet applies what it can of quick settlements, in the order of their keys, so that two batches do not wait for each
// other, and returns the places of what is left: stale tokens, and messages that concern others.
func (s *Store) settleSet(ctx context.Context, now time.Time, b *settling) (left []int, err error) {
	order := make([]int, len(b.items))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(x, y int) int {
		a, b := &b.items[x].Token, &b.items[y].Token
		if a.Queue != b.Queue {
			return strings.Compare(a.Queue, b.Queue)
		}
		return strings.Compare(a.ID, b.ID)
	})
	n := len(order)
	place, version, state := make([]int64, n), make([]int64, n), make([]int64, n)
	at, purgeAt, uncount, attempted := make([]int64, n), make([]int64, n), make([]int64, n), make([]int64, n)
	queue, id, line, text := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	for i, from := range order {
		t := &b.items[from]
		place[i], version[i], state[i] = int64(from), t.Token.Version, int64(t.Outcome.State())
		at[i], purgeAt[i] = t.at, t.purgeAt
		uncount[i], attempted[i] = bit(t.Outcome == store.OutcomeRelease), bit(t.Attempt != nil)
		queue[i], id[i], line[i], text[i] = t.Token.Queue, t.Token.ID, t.line, t.Error
		s.versions.Saw(t.Token.Version + 1)
	}
	done := make([]bool, n)
	err = s.batch(ctx, "settle", Step{
		Query: s.q.settleSet,
		Args:  []any{place, queue, id, version, state, at, purgeAt, uncount, attempted, line, text, floor(now)},
		Begin: func() { clear(done) },
		Row: func(row Row) error {
			var place int64
			err := row.Scan(&place)
			done[place] = true
			return err
		},
	})
	for i := range done {
		if !done[i] {
			left = append(left, i)
		}
	}
	return left, err
}

// part returns some of the settlements, and what takes their outcome over.
func (b *settling) part(places []int) (some *settling, merge func()) {
	some = &settling{items: make([]settlement, len(places)), load: b.load}
	for i, at := range places {
		some.items[i] = b.items[at]
	}
	return some, func() {
		for i, at := range places {
			b.errs[at] = some.errs[i]
		}
	}
}

// extendSet moves the ends of live leases by one statement.
func (s *Store) extendSet(ctx context.Context, now time.Time, tokens []store.Token, until time.Time) ([]store.Held, error) {
	index := make(map[store.Token][]int, len(tokens))
	var place, version []int64
	var queue, id []string
	for i, t := range tokens {
		if index[t] = append(index[t], i); len(index[t]) > 1 {
			continue
		}
		place, version = append(place, int64(i)), append(version, t.Version)
		queue, id = append(queue, t.Queue), append(id, t.ID)
	}
	held := make([]store.Held, len(tokens))
	err := s.batch(ctx, "extend", Step{
		Query: s.q.extendSet,
		Args:  []any{place, queue, id, version, floor(now), ceil(until)},
		Begin: func() { clear(held) },
		Row: func(row Row) error {
			var place, stop int64
			err := row.Scan(&place, &stop)
			for _, i := range index[tokens[place]] {
				held[i] = store.Extended
				if stop != 0 {
					held[i] = store.Stopping
				}
			}
			return err
		},
	})
	return held, err
}
