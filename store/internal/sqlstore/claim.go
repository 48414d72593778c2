package sqlstore

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/belfryhq/belfry/store"
)

// maxLoad is what a claim of one queue counts for at most; more is asked for than there is.
const maxLoad = 1000

// Claim takes leases.
func (s *Store) Claim(ctx context.Context, c store.Claim) (store.Claimed, error) {
	if s.batcher != nil {
		got := newClaiming(&work{Store: s, ctx: ctx, now: floor(c.Now), time: c.Now}, &c)
		if got.quick() {
			if err := got.set(); err != nil {
				return store.Claimed{}, err
			}
			return got.claimed()
		}
	}
	var got *Claiming
	load := Load{Rows: len(c.Keys)}
	for _, q := range c.Queues {
		load.Rows += min(max(q.Limit, 1), maxLoad)
	}
	err := s.write(ctx, "claim", c.Now, load, func(w *work) error {
		got = newClaiming(w, &c)
		return got.run()
	})
	if err != nil {
		return store.Claimed{}, err
	}
	return got.claimed()
}

// claimed returns what was got.
func (c *Claiming) claimed() (claimed store.Claimed, err error) {
	c.starts.claimed(c.taken)
	claimed = store.Claimed{Queues: c.next, Revision: c.revision, StoreNow: c.storeNow}
	claimed.Messages, err = messages(c.taken)
	return claimed, err
}

// Taker takes messages of one queue: at most limit of those that are due, in the order (priority, visible_at, id), and
// if fewer are due than that, what is scheduled until the horizon in the order (visible_at, id). It returns the first
// instant at which something in the queue is visible then, or never.
type Taker func(c *Claiming, queue string, limit int) (next int64, err error)

// Claiming is a claim under way.
type Claiming struct {
	*work
	claim    *store.Claim
	until    int64
	horizon  int64 // how far ahead free slots are filled
	taken    []*record
	next     []store.QueueNext
	revision int64
	storeNow time.Time // zero: the database has no clock of its own

	looking []*looking // of each queue: where to begin
	found   [][]line   // of each queue that has a looking: what is there now
}

func newClaiming(w *work, c *store.Claim) *Claiming {
	claiming := &Claiming{work: w, claim: c, until: ceil(c.Until), horizon: w.now}
	if c.Ahead > 0 {
		claiming.horizon = floor(c.Now.Add(c.Ahead))
	}
	return claiming
}

func (c *Claiming) run() error {
	if err := c.takeKeys(); err != nil {
		return err
	}
	if len(c.claim.Queues) > 0 {
		c.next = make([]store.QueueNext, len(c.claim.Queues))
	}
	for i := range c.claim.Queues {
		if err := c.queue(&c.claim.Queues[i], &c.next[i]); err != nil {
			return err
		}
	}
	if c.q.claimEnd != nil {
		return c.query(c.q.claimEnd, c.end)
	}
	_, err := c.first(c.q.revision, []any{&c.revision})
	return err
}

// takeKeys takes messages by address.
func (c *Claiming) takeKeys() error {
	keys := c.claim.Keys
	var found []*record
	seen := make(map[int64]bool, len(keys))
	args := func(i int) []any { return []any{keys[i].Queue, keys[i].ID, c.now} }
	err := c.queryEach(c.q.pickKey, len(keys), args, func(_ int, row Row) error {
		r := &record{}
		if err := row.Scan(r.columns(bareWidth + 1)...); err != nil {
			return err
		}
		if !seen[r.n] {
			seen[r.n] = true
			found = append(found, r)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return c.lease(found)
}

// queue takes what a queue has for the claim, within its limits, and tells what is left.
func (c *Claiming) queue(qc *store.QueueClaim, left *store.QueueNext) error {
	l, err := c.limits(qc)
	if err != nil {
		return err
	}
	slots := max(qc.Limit, 0)
	bounded := l.slots < slots
	before := len(c.taken)
	next, err := c.Store.take(c, qc.Queue, min(slots, l.slots))
	if err != nil {
		return err
	}
	if err := l.spend(c.work, qc, len(c.taken)-before); err != nil {
		return err
	}
	left.Next = instant(next)
	if bounded && next <= c.now {
		left.Limited = true
		if l.byRate {
			left.FreeAt = l.freeAt(qc.Rate)
		}
	}
	return nil
}

// lease puts records, as they were just read, under the claim's lease.
func (c *Claiming) lease(records []*record) error {
	var args [5]any
	err := c.execEach(c.q.lease, len(records), func(i int) []any {
		args = [5]any{&records[i].n, &c.until, &c.claim.Owner, &c.claim.Epoch, &c.now}
		return args[:]
	}, nil)
	if err != nil {
		return err
	}
	for _, r := range records {
		r.state, r.visibleAt, r.updatedAt = int64(store.Leased), c.until, c.now
		r.owner, r.epoch, r.stop = c.claim.Owner, c.claim.Epoch, 0
		r.claims++
		r.version++
		c.versions.Saw(r.version)
	}
	c.taken = append(c.taken, records...)
	return nil
}

// line is one priority of a queue with the first instant at which something in it is visible.
type line struct{ priority, first int64 }

// TakeByPriority is the Taker of databases on which the walk over the priorities of a queue is many small queries: one
// probe for each priority in use, then one bounded range of the claim index for each that has something.
func TakeByPriority(c *Claiming, queue string, limit int) (next int64, err error) {
	lines, next, err := c.lines(queue)
	if err != nil || limit <= 0 || next > c.horizon {
		return next, err
	}
	before := len(c.taken)
	if err := c.takeDue(queue, lines, limit); err != nil {
		return 0, err
	}
	if free := limit - (len(c.taken) - before); free > 0 && c.horizon > c.now {
		if err := c.takeAhead(queue, lines, free); err != nil {
			return 0, err
		}
	}
	if len(c.taken) == before {
		return next, nil
	}
	_, next, err = c.lines(queue)
	return next, err
}

// lines returns the priorities in use and the first instant of them all.
func (c *Claiming) lines(queue string) ([]line, int64, error) {
	var lines []line
	first := int64(never)
	err := c.query(c.q.priorities, func(row Row) error {
		var l line
		if err := row.Scan(&l.priority, &l.first); err != nil {
			return err
		}
		lines = append(lines, l)
		first = min(first, l.first)
		return nil
	}, queue)
	return lines, first, err
}

// takeDue leases what is due, the lower priorities first.
func (c *Claiming) takeDue(queue string, lines []line, limit int) error {
	var due []*record
	for _, l := range lines {
		if l.first > c.now || len(due) == limit {
			continue
		}
		more, err := c.pick(c.q.pickDue, queue, l.priority, c.now, int64(limit-len(due)))
		if err != nil {
			return err
		}
		due = append(due, more...)
	}
	return c.lease(due)
}

// takeAhead leases what falls due until the horizon, whatever its priority.
func (c *Claiming) takeAhead(queue string, lines []line, limit int) error {
	var soon []*record
	for _, l := range lines {
		if l.first > c.horizon {
			continue
		}
		more, err := c.pick(c.q.pickAhead, queue, l.priority, c.now, c.horizon, int64(limit))
		if err != nil {
			return err
		}
		soon = append(soon, more...)
	}
	slices.SortFunc(soon, func(a, b *record) int {
		return cmp.Or(cmp.Compare(a.visibleAt, b.visibleAt), cmp.Compare(a.id, b.id))
	})
	return c.lease(soon[:min(limit, len(soon))])
}

// pick reads messages with their payloads.
func (c *Claiming) pick(q *Query, args ...any) ([]*record, error) {
	var records []*record
	err := c.query(q, func(row Row) error {
		r := &record{}
		records = append(records, r)
		return row.Scan(r.columns(bareWidth + 1)...)
	}, args...)
	return records, err
}
