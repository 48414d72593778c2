package dispatch

import (
	"container/heap"
	"math"
	"time"

	"github.com/belfryhq/belfry/store"
)

// Limits are the settings of a queue that hold over all workers.
type Limits struct {
	Paused      bool
	Concurrency int
	Rate        store.Rate
}

// queue is what the dispatcher knows of one queue. Guarded by Dispatcher.mu.
type queue struct {
	name        string
	concurrency int
	limits      Limits

	next     time.Time // the earliest instant at which something may be visible; store.Never: nothing known
	hinted   time.Time // the earliest hint that came while a claim was under way
	blocked  time.Time // no claim before this instant: a limit over all workers bounds
	place    place
	index    int       // in the heap of sleeping queues
	wakeAt   time.Time // key in that heap
	inHand   int       // leases claimed whose delivery has not ended
	aheadOf  int       // of these, not yet due
	running  int       // of these, being delivered
	waiting  fifo[*lease]
	finished rate
}

// place is where a queue waits for its next claim.
type place uint8

const (
	idle      place = iota // nothing to claim, or no room
	asleep                 // in the heap
	inTurn                 // in the list of ready queues
	beingRead              // a claim is under way
)

// holdFor is the span of measured throughput that is claimed beyond the free slots.
const holdFor = 50 * time.Millisecond

// room returns how many messages may be claimed from the queue now, and whether messages ahead of their time may be
// among them. Leases held ahead leave room for what is due now: a slot is taken when a delivery starts.
func (q *queue) room() (limit int, ahead bool) {
	if q.limits.Paused {
		return 0, false
	}
	hold := int(q.finished.perSecond(time.Now()) * holdFor.Seconds())
	due := q.inHand - q.aheadOf
	if excess := due - q.concurrency; excess > 0 && excess > hold/2 {
		return 0, false
	}
	most := q.concurrency + hold
	return max(most-due, 0), most > q.inHand
}

// rate measures events per second, weighting the last half second most. The zero value is ready.
type rate struct {
	weight float64
	at     time.Time
}

const rateSpan = 500 * time.Millisecond

func (r *rate) decay(now time.Time) {
	if r.weight != 0 {
		r.weight *= math.Exp(-float64(now.Sub(r.at)) / float64(rateSpan))
	}
	r.at = now
}

func (r *rate) add(now time.Time) {
	r.decay(now)
	r.weight++
}

func (r *rate) perSecond(now time.Time) float64 {
	r.decay(now)
	return r.weight / rateSpan.Seconds()
}

// queueOf returns the queue with the name if it is this worker's.
func (d *Dispatcher) queueOf(name string) *queue {
	if q, ok := d.queues[name]; ok {
		return q
	}
	concurrency, ok := d.cfg.Serves(name)
	if !ok {
		return nil
	}
	q := &queue{name: name, concurrency: concurrency, next: store.Never, hinted: store.Never}
	d.queues[name] = q
	return q
}

// Hear tells the dispatcher that something may be visible in queues at instants. It does not block.
func (d *Dispatcher) Hear(hints []store.QueueHint) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, h := range hints {
		if q := d.queueOf(h.Queue); q != nil {
			d.hear(q, h.At)
		}
	}
}

func (d *Dispatcher) hear(q *queue, at time.Time) {
	q.hinted = store.Earlier(q.hinted, at)
	if at.Before(q.next) {
		q.next = at
		d.place(q)
	}
}

// Configure sets the limits of all queues: those that are not named have none. What is in hand but not started of a queue
// that is now paused is given back.
func (d *Dispatcher) Configure(limits map[string]Limits) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for name := range limits {
		d.queueOf(name)
	}
	paused := map[*queue]bool{}
	for name, q := range d.queues {
		if q.limits == limits[name] {
			continue
		}
		q.limits, q.blocked = limits[name], time.Time{}
		if q.limits.Paused {
			paused[q] = true
		}
		d.place(q)
	}
	if len(paused) > 0 {
		d.giveBack(func(l *lease) bool { return paused[l.queue] })
	}
}

// place puts the queue where it waits for its next claim: in turn, asleep until something may be due, or idle.
func (d *Dispatcher) place(q *queue) {
	if q.place == beingRead {
		return // placed when the claim is done
	}
	limit, ahead := q.room()
	if limit == 0 || q.next.Equal(store.Never) {
		d.moveTo(q, idle)
		return
	}
	wakeAt := q.next
	if ahead {
		wakeAt = wakeAt.Add(-d.cfg.Ahead / 2)
	}
	wakeAt = store.Later(wakeAt, q.blocked)
	if !wakeAt.After(d.cfg.Clock.Now()) {
		d.moveTo(q, inTurn)
		return
	}
	if q.place == asleep && q.wakeAt.Equal(wakeAt) {
		return
	}
	d.moveTo(q, idle)
	q.wakeAt = wakeAt
	d.moveTo(q, asleep)
}

// moveTo changes where the queue waits, and signals the claim loop when there may be something to do earlier.
func (d *Dispatcher) moveTo(q *queue, to place) {
	if q.place == to {
		return
	}
	switch q.place {
	case asleep:
		heap.Remove(&d.sleeping, q.index)
	case inTurn:
		if to != beingRead { // the claim loop has taken it out already
			d.ready.drop(func(other *queue) bool { return other == q })
		}
	}
	q.place = to
	switch to {
	case asleep:
		heap.Push(&d.sleeping, q)
		if q.index == 0 {
			notify(d.claim)
		}
	case inTurn:
		d.ready.push(q)
		notify(d.claim)
	}
}

// queueHeap orders queues by wakeAt.
type queueHeap []*queue

func (h queueHeap) Len() int           { return len(h) }
func (h queueHeap) Less(i, j int) bool { return h[i].wakeAt.Before(h[j].wakeAt) }
func (h queueHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i]; h[i].index, h[j].index = i, j }

// Push and Pop are container/heap's.
func (h *queueHeap) Push(x any) { q := x.(*queue); q.index = len(*h); *h = append(*h, q) }

func (h *queueHeap) Pop() any {
	old := *h
	q := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return q
}
