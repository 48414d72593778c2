package memstore

import (
	"context"
	"slices"

	"github.com/belfryhq/belfry/store"
)

// Claim takes leases. Its cost is in proportion to what it takes and to the priorities in use of the queues it names.
func (s *Store) Claim(ctx context.Context, claim store.Claim) (store.Claimed, error) {
	if err := s.enter(ctx); err != nil {
		return store.Claimed{}, err
	}
	defer s.mu.Unlock()
	c := claimer{
		s: s, now: floor(claim.Now), until: at(claim.Until),
		holder: &holder{claim.Owner, claim.Epoch},
	}
	c.horizon = c.now
	if claim.Ahead > 0 {
		c.horizon = floor(claim.Now.Add(claim.Ahead))
	}
	for _, key := range claim.Keys {
		c.claimKey(key)
	}
	claimed := store.Claimed{Revision: s.docs.revision}
	if len(claim.Queues) > 0 {
		claimed.Queues = make([]store.QueueNext, len(claim.Queues))
	}
	for i := range claim.Queues {
		claimed.Queues[i] = c.claimQueue(&claim.Queues[i])
	}
	if len(c.taken) > 0 {
		claimed.Messages = make([]store.Message, len(c.taken))
	}
	for i, r := range c.taken {
		claimed.Messages[i] = r.full()
	}
	return claimed, nil
}

// claimer is one Claim under way.
type claimer struct {
	s       *Store
	now     instant
	until   instant
	horizon instant // how far ahead free slots are filled
	holder  *holder
	taken   []*record
}

// claimKey takes a message by its address if it is claimable.
func (c *claimer) claimKey(key store.Key) {
	r := c.s.message(key.Queue, key.ID)
	if r == nil || !r.state.Live() || r.visibleAt > c.now || r.holder == c.holder {
		return
	}
	r.queue.leaveLane(r)
	c.lease(r)
}

// claimQueue takes what a queue has for the claim and tells what is left.
func (c *claimer) claimQueue(qc *store.QueueClaim) store.QueueNext {
	q := c.s.queues[qc.Queue]
	if q == nil {
		return store.QueueNext{Next: store.Never}
	}
	slots := max(qc.Limit, 0)
	limits := q.limits(qc, c.now)
	bounded := limits.slots < slots
	if bounded {
		slots = limits.slots
	}
	before := len(c.taken)
	c.takeDue(q, slots)
	c.takeAhead(q, slots-(len(c.taken)-before))
	q.spend(qc.Rate, c.now, len(c.taken)-before)

	next := q.next()
	left := store.QueueNext{Next: next.time()}
	if bounded && next <= c.now {
		left.Limited = true
		if limits.byRate {
			left.FreeAt = q.freeAt(qc.Rate)
		}
	}
	return left
}

// takeDue leases the first messages of a queue that are visible, at most n. All are taken out before the first is put
// back under its lease's end, so that none is met twice.
func (c *claimer) takeDue(q *queue, n int) {
	from := len(c.taken)
	for i := 0; i < len(q.lanes) && n > 0; {
		l := q.lanes[i]
		for n > 0 {
			first, ok := l.tree.Min()
			if !ok || first.at > c.now {
				break
			}
			l.tree.PopMin()
			c.taken = append(c.taken, first.r)
			n--
		}
		if l.tree.Len() == 0 {
			q.lanes = slices.Delete(q.lanes, i, i+1)
			continue
		}
		i++
	}
	c.leaseFrom(from)
}

// takeAhead leases what falls due until the horizon, at most n, whatever its priority.
func (c *claimer) takeAhead(q *queue, n int) {
	if n <= 0 || c.horizon <= c.now {
		return
	}
	var soon []slot
	for _, l := range q.lanes {
		found := 0
		l.tree.Ascend(probe(c.now+1), func(s slot) bool {
			if s.at > c.horizon || found == n {
				return false
			}
			if s.r.state == store.Scheduled {
				soon = append(soon, s)
				found++
			}
			return true
		})
	}
	slices.SortFunc(soon, slot.compare)
	from := len(c.taken)
	for _, s := range soon[:min(n, len(soon))] {
		q.leaveLane(s.r)
		c.taken = append(c.taken, s.r)
	}
	c.leaseFrom(from)
}

// leaseFrom leases what was taken since, which is out of its lanes.
func (c *claimer) leaseFrom(from int) {
	taken := c.taken[from:]
	c.taken = c.taken[:from]
	for _, r := range taken {
		c.lease(r)
	}
}

// lease puts a message that is out of its lane under the claim's lease.
func (c *claimer) lease(r *record) {
	q := r.queue
	if r.state != store.Leased {
		q.counts[r.state]--
		q.counts[store.Leased]++
		q.hold(r)
	}
	r.state, r.stop, r.holder = store.Leased, false, c.holder
	r.claims++
	r.version++
	r.updatedAt, r.visibleAt = c.now, c.until
	q.lane(r.priority).add(r)
	c.taken = append(c.taken, r)
}
