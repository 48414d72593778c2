package dispatch

import (
	"time"

	"github.com/belfryhq/belfry/internal/lifecycle"
	"github.com/belfryhq/belfry/store"
)

// lane is one destination: what a slow one delays is only its own messages. Guarded by Dispatcher.mu.
type lane struct {
	name    string
	running int
	waiting fifo[*lease] // due, with nothing in the way but this lane
	detour  time.Duration
}

const (
	laneIsSlow = 250 * time.Millisecond // a message that waits longer for its lane shows that the lane is slow
	minDetour  = time.Second            // how long the messages of a slow lane are given back for
	maxDetour  = 30 * time.Second
)

// pump starts the waiting leases of a queue while it has free slots.
func (d *Dispatcher) pump(q *queue) {
	for q.running < q.concurrency && q.waiting.len() > 0 {
		l := q.waiting.pop()
		if l.lost {
			continue
		}
		if ln := d.laneOf(l); ln != nil {
			if ln.running >= d.laneLimit(q) {
				d.park(l, ln)
				continue
			}
			ln.running++
		}
		q.running++
		l.phase = running
		d.deliveries.Add(1)
		go d.deliver(l)
	}
}

// laneShare: a lane may use one part in so many of its limit where others need the room.
const laneShare = 4

// laneLimit is how many deliveries of the queue may be under way to one destination now. Half of a queue's slots are for
// whoever comes; the other half is for destinations that use no more than their share, so that a few slow ones cannot take
// all.
func (d *Dispatcher) laneLimit(q *queue) int {
	if q.running < (q.concurrency+1)/2 {
		return d.cfg.LaneLimit
	}
	return d.parkLimit()
}

// parkLimit is how many messages may wait here for one slow destination: they take up room that others could use.
func (d *Dispatcher) parkLimit() int { return max(d.cfg.LaneLimit/laneShare, 1) }

// laneOf returns the lease's lane; nil: it has none.
func (d *Dispatcher) laneOf(l *lease) *lane {
	if l.lane != nil {
		return l.lane
	}
	name := d.cfg.Lane(l.delivery())
	if name == "" {
		return nil
	}
	ln, ok := d.lanes[name]
	if !ok {
		ln = &lane{name: name}
		d.lanes[name] = ln
	}
	l.lane = ln
	return ln
}

// park lets a lease wait for its lane. When the lane is known to be slow and has enough waiting, the message is given back
// instead, so that it does not stand in the way of other destinations.
func (d *Dispatcher) park(l *lease, ln *lane) {
	l.phase, l.parked = parked, time.Now()
	ln.waiting.push(l)
	if ln.waiting.len() <= d.parkLimit() || time.Since(ln.waiting.peek().parked) < laneIsSlow {
		return
	}
	if ln.detour == 0 {
		ln.detour = minDetour
	}
	surplus := make([]*lease, 0, 1)
	for ln.waiting.len() > d.parkLimit() {
		surplus = append(surplus, ln.waiting.popLast())
	}
	d.sendAway(surplus, ln.detour)
}

// easeLanes looks for slow lanes whose waiting messages use up what their queues may hold, and gives the surplus back.
func (d *Dispatcher) easeLanes() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for name, ln := range d.lanes {
		ln.waiting.drop(func(l *lease) bool { return l.lost })
		if ln.running == 0 && ln.waiting.len() == 0 {
			delete(d.lanes, name)
			continue
		}
		if ln.waiting.len() <= d.parkLimit() || time.Since(ln.waiting.peek().parked) < laneIsSlow {
			if ln.waiting.len() == 0 {
				ln.detour = 0
			}
			continue
		}
		ln.detour = min(max(2*ln.detour, minDetour), maxDetour)
		var surplus []*lease
		for ln.waiting.len() > d.parkLimit() {
			surplus = append(surplus, ln.waiting.popLast())
		}
		d.sendAway(surplus, ln.detour)
	}
}

// sendAway gives leases back, uncounted, to come due again after about the delay.
func (d *Dispatcher) sendAway(leases []*lease, delay time.Duration) {
	at := d.cfg.Clock.Now().Add(delay)
	for i, l := range leases {
		spread := time.Duration(i) * delay / time.Duration(2*len(leases))
		d.endDelivery(l)
		d.deliveries.Go(func() { d.settle(l, lifecycle.Unstarted(&l.Message, store.Ceil(at.Add(spread)))) })
	}
}

// leaveLane frees the lease's place in its lane and lets the next one in.
func (d *Dispatcher) leaveLane(l *lease) {
	ln := l.lane
	if ln == nil {
		return
	}
	ln.running--
	for ln.waiting.len() > 0 && ln.running < d.laneLimit(ln.waiting.peek().queue) {
		next := ln.waiting.pop()
		if next.lost {
			continue
		}
		next.phase = waiting
		next.queue.waiting.pushFront(next)
		if next.queue != l.queue {
			d.pump(next.queue)
		}
		return
	}
	if ln.running == 0 {
		delete(d.lanes, ln.name)
	}
}
