package dispatch

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/belfryhq/belfry/store"
)

const (
	claimQueues   = 128                    // queues in one claim
	claimMessages = 1000                   // messages in one claim
	minPause      = 50 * time.Millisecond  // after a first failed claim
	maxPause      = time.Second            // after many
	limitedPause  = 100 * time.Millisecond // until a queue that others have filled is looked at again
)

// runClaims claims from queues in turn whenever something is due and there is room for it, until ctx ends.
func (d *Dispatcher) runClaims(ctx context.Context) {
	var claims sync.WaitGroup
	defer claims.Wait()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		batch, ahead, wait := d.nextClaim()
		if len(batch) > 0 {
			claims.Go(func() {
				d.claimFrom(ctx, batch, ahead)
				d.claimDone()
			})
			continue
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return
		case <-d.claim:
		case <-timer.C:
		}
	}
}

const (
	idleWait = time.Second    // bounds every sleep until an instant, so that a step of the clock is noticed
	forever  = 24 * time.Hour // the sleep of a loop that only a signal can give work
)

// nextClaim picks the queues to claim from now; without any it says how long there will be none.
func (d *Dispatcher) nextClaim() (batch []store.QueueClaim, ahead time.Duration, wait time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.cfg.Clock.Now()
	if d.stopping || d.broken || d.claiming >= max(d.cfg.Claimers, 1) {
		return nil, 0, forever
	}
	if d.pause.After(now) {
		return nil, 0, min(d.cfg.Clock.Until(d.pause), idleWait)
	}
	for len(d.sleeping) > 0 && !d.sleeping[0].wakeAt.After(now) {
		d.moveTo(d.sleeping[0], inTurn)
	}
	batch, ahead = d.takeTurns()
	if len(batch) > 0 {
		d.claiming++
		return batch, ahead, 0
	}
	if len(d.sleeping) == 0 {
		return nil, 0, forever
	}
	return nil, 0, min(d.cfg.Clock.Until(d.sleeping[0].wakeAt), idleWait)
}

// takeTurns takes queues from the front of the turn: those that have the same room for what is ahead of its time.
func (d *Dispatcher) takeTurns() (batch []store.QueueClaim, ahead time.Duration) {
	total := 0
	for d.ready.len() > 0 && len(batch) < claimQueues && total < claimMessages {
		q := d.ready.peek()
		limit, roomAhead := q.room()
		if limit == 0 || q.limits.Paused {
			d.ready.pop()
			q.place = idle
			continue
		}
		queueAhead := time.Duration(0)
		if roomAhead {
			queueAhead = d.cfg.Ahead
		}
		if len(batch) > 0 && queueAhead != ahead {
			break
		}
		ahead = queueAhead
		d.ready.pop()
		q.place, q.hinted = beingRead, store.Never
		limit = min(limit, claimMessages-total)
		total += limit
		batch = append(batch, store.QueueClaim{
			Queue: q.name, Limit: limit, Concurrency: q.limits.Concurrency, Rate: q.limits.Rate,
		})
	}
	return batch, ahead
}

func (d *Dispatcher) claimDone() {
	d.mu.Lock()
	d.claiming--
	d.mu.Unlock()
	notify(d.claim)
}

// claimFrom makes one claim and takes what it got in hand.
func (d *Dispatcher) claimFrom(ctx context.Context, batch []store.QueueClaim, ahead time.Duration) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.cfg.StoreTimeout)
	defer cancel()
	taken := time.Now()
	now := d.cfg.Clock.Now()
	claimed, err := d.cfg.Line.Claim(ctx, store.Claim{
		Now: now, Until: store.Floor(now.Add(d.cfg.Lease)), Owner: d.cfg.Owner, Epoch: d.cfg.Epoch,
		Queues: batch, Ahead: ahead,
	})
	if err != nil {
		d.claimFailed(batch, err)
		return
	}
	if !claimed.StoreNow.IsZero() {
		d.cfg.Clock.Observe(claimed.StoreNow, time.Now())
	}
	d.cfg.Revision(claimed.Revision)
	d.stats.claims.Add(1)
	d.stats.claimed.Add(int64(len(claimed.Messages)))
	d.take(claimed, batch, taken, now.Add(d.cfg.Lease))
}

// claimFailed puts the queues back and pauses, longer after each failure.
func (d *Dispatcher) claimFailed(batch []store.QueueClaim, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failures == 0 {
		d.cfg.Logger.Error("the store cannot be claimed from; deliveries wait until it can", "error", err)
	}
	d.failures++
	pause := min(minPause<<min(d.failures-1, 10), maxPause)
	pause = pause/2 + rand.N(pause/2+1)
	d.pause = d.cfg.Clock.Now().Add(pause)
	for _, c := range batch {
		q := d.queues[c.Queue]
		q.place = idle
		d.place(q)
	}
}

// take puts claimed messages in hand and the queues of the claim back where they wait.
func (d *Dispatcher) take(claimed store.Claimed, batch []store.QueueClaim, taken, until time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failures > 0 {
		d.cfg.Logger.Info("the store can be claimed from again", "failed_claims", d.failures)
		d.failures = 0
	}
	now := d.cfg.Clock.Now()
	touched := make(map[*queue]bool, len(batch))
	for i := range claimed.Messages {
		m := &claimed.Messages[i]
		q := d.queues[m.Queue]
		l := &lease{Message: *m, queue: q, claimed: taken, taken: taken, term: d.cfg.Lease}
		if old, ok := d.held[m.Key()]; ok { // claimed anew while a delivery under an earlier claim goes on
			d.lose(old)
		}
		d.held[m.Key()] = l
		q.inHand++
		if m.DueAt.After(now) {
			q.aheadOf++
			d.ahead.add(l)
			continue
		}
		l.phase = waiting
		q.waiting.push(l)
		touched[q] = true
	}
	for q := range touched {
		d.pump(q)
	}
	for i, c := range batch {
		d.settleNext(d.queues[c.Queue], claimed.Queues[i], until)
	}
	notify(d.fire)
	if len(claimed.Messages) > 0 {
		notify(d.keep)
	}
}

// settleNext notes what a claim left in a queue. An instant that is the end of the leases just taken is no news: a lease
// of ours that ends is settled or lost, and what follows it the scan finds in time.
func (d *Dispatcher) settleNext(q *queue, left store.QueueNext, until time.Time) {
	next := left.Next
	if next.Equal(store.Floor(until)) {
		next = store.Never
	}
	q.next = store.Earlier(next, q.hinted)
	q.blocked = time.Time{}
	if left.Limited {
		q.blocked = left.FreeAt
		if q.blocked.IsZero() {
			q.blocked = d.cfg.Clock.Now().Add(limitedPause)
		}
	}
	q.place = idle
	d.place(q)
}
