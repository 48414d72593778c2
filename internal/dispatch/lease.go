package dispatch

import (
	"container/heap"
	"context"
	"time"

	"github.com/belfryhq/belfry/store"
)

// phase is how far a lease in hand has come.
type phase uint8

const (
	early    phase = iota // claimed ahead: waits for its instant
	waiting               // due: waits for a slot of its queue
	parked                // due: waits for its lane
	running               // is being delivered
	settling              // the delivery has ended: waits until that is durable
)

// lease is a claimed message in hand. Guarded by Dispatcher.mu but for what its delivery alone uses.
type lease struct {
	store.Message

	queue  *queue
	lane   *lane
	phase  phase
	index  int // in the heap of early leases
	parked time.Time

	// taken is when the claim or the last extension was asked for, with Go's monotonic reading; term is the lease's
	// length from then. Both clocks are asked how much is left: one stops while a machine sleeps, the other may step.
	taken time.Time
	term  time.Duration

	claimed time.Time
	started time.Time
	cancel  context.CancelCauseFunc // set while running
	lost    bool
	stop    bool // the message shall be stopped
}

// left returns how much of the lease is left, by the clock that says less.
func (l *lease) left(now time.Time) time.Duration {
	monotonic := now.Sub(l.taken)
	wall := now.Round(0).Sub(l.taken.Round(0))
	return l.term - max(monotonic, wall)
}

// margin is how much of a lease must be left for a delivery to start or to go on.
func (d *Dispatcher) margin() time.Duration { return min(500*time.Millisecond, d.cfg.Lease/4) }

// leaseHeap orders leases by DueAt, then as they would be claimed.
type leaseHeap []*lease

func (h leaseHeap) Len() int { return len(h) }

func (h leaseHeap) Less(i, j int) bool {
	a, b := h[i], h[j]
	if !a.DueAt.Equal(b.DueAt) {
		return a.DueAt.Before(b.DueAt)
	}
	if a.Priority != b.Priority {
		return a.Priority < b.Priority
	}
	return a.ID < b.ID
}

func (h leaseHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i]; h[i].index, h[j].index = i, j }

// Push and Pop are container/heap's.
func (h *leaseHeap) Push(x any) { l := x.(*lease); l.index = len(*h); *h = append(*h, l) }

func (h *leaseHeap) Pop() any {
	old := *h
	l := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return l
}

func (h *leaseHeap) add(l *lease)    { heap.Push(h, l) }
func (h *leaseHeap) remove(l *lease) { heap.Remove(h, l.index) }
func (h *leaseHeap) take() *lease    { return heap.Pop(h).(*lease) }

// runFire starts the leases that were claimed ahead, each at its instant, until ctx ends.
func (d *Dispatcher) runFire(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		timer.Reset(d.fireDue())
		select {
		case <-ctx.Done():
			return
		case <-d.fire:
		case <-timer.C:
		}
	}
}

// fireDue starts what has become due and returns how long nothing else will.
func (d *Dispatcher) fireDue() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.cfg.Clock.Now()
	for len(d.ahead) > 0 && !d.ahead[0].DueAt.After(now) {
		l := d.ahead.take()
		l.queue.aheadOf--
		l.phase = waiting
		l.queue.waiting.push(l)
		d.pump(l.queue)
	}
	if len(d.ahead) == 0 {
		return forever
	}
	return min(d.cfg.Clock.Until(d.ahead[0].DueAt), idleWait)
}
