package dispatch

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"github.com/belfryhq/belfry/internal/lifecycle"
	"github.com/belfryhq/belfry/store"
	"github.com/belfryhq/belfry/target"
)

// deliver is the life of one lease from its slot to its settlement.
func (d *Dispatcher) deliver(l *lease) {
	defer d.deliveries.Done()
	settlement, settled := d.outcome(l)
	d.mu.Lock()
	d.endDelivery(l)
	d.mu.Unlock()
	if settled {
		d.settle(l, settlement)
		return
	}
	d.forget(l)
}

// outcome delivers and decides; settled is false when there is nothing to settle: the lease is lost.
func (d *Dispatcher) outcome(l *lease) (s store.Settlement, settled bool) {
	now := d.cfg.Clock.Now()
	if s, end := lifecycle.Preflight(&l.Message, now); end {
		return s, true
	}
	left, stop := d.look(l)
	if stop {
		return lifecycle.Interrupted(&l.Message, lifecycle.Result{}, now), true
	}
	if left <= d.margin() { // the process was stopped for a while: somebody else may be about to claim it
		return lifecycle.Unstarted(&l.Message, now), true
	}
	result, cause := d.attempt(l)
	now = d.cfg.Clock.Now()
	switch {
	case result.Err == nil || cause == nil:
		return lifecycle.Settle(&l.Message, result, now, rand.Float64), true
	case errors.Is(cause, d.cfg.ErrCanceled):
		return lifecycle.Interrupted(&l.Message, result, now), true
	case errors.Is(cause, d.cfg.ErrShutdown):
		return lifecycle.Unstarted(&l.Message, now), true
	default:
		return store.Settlement{}, false
	}
}

// look returns how much of a lease is left, and whether the message shall be stopped.
func (d *Dispatcher) look(l *lease) (left time.Duration, stop bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return l.left(time.Now()), l.stop
}

// attempt calls the target. The cause is that of the engine ending the delivery's context early; nil when it did not.
func (d *Dispatcher) attempt(l *lease) (result lifecycle.Result, cause error) {
	ctx, cancel := newDeliveryContext(l.Timeout)
	defer cancel(nil)
	d.mu.Lock()
	l.started, l.cancel = time.Now(), cancel
	early := d.ended // the grace period is over
	if l.lost {
		early = store.ErrLeaseLost
	}
	d.mu.Unlock()
	if early != nil {
		return lifecycle.Result{Err: early}, early
	}
	delivery := l.delivery()
	observed := target.Observation{}
	delivery.Observed = &observed
	delivery.Lease = &hold{d: d, l: l, ctx: ctx}
	began := time.Now()
	result = lifecycle.Result{StartedAt: d.cfg.Clock.Now(), Owner: d.cfg.Owner}
	result.Err = d.call(ctx, delivery)
	result.Duration = time.Since(began)
	result.Status, result.Response = observed.Status, observed.Response
	if ended := context.Cause(ctx); ended != nil && !errors.Is(ended, context.DeadlineExceeded) {
		cause = ended
	}
	return result, cause
}

// call calls the target and turns a panic into a failed attempt.
func (d *Dispatcher) call(ctx context.Context, delivery target.Delivery) (err error) {
	defer func() {
		if p := recover(); p != nil {
			d.cfg.Logger.Error("a delivery panicked", "queue", delivery.Queue, "id", delivery.ID, "kind", delivery.Kind,
				"panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return d.cfg.Target.Deliver(ctx, delivery)
}

// delivery is the lease's message as the target sees it.
func (l *lease) delivery() target.Delivery {
	m := &l.Message
	return target.Delivery{
		Queue: m.Queue, ID: m.ID, Kind: m.Kind, Target: m.Target, Address: m.Address, Params: m.Params,
		ContentType: m.ContentType, Payload: m.Payload, Headers: m.Headers, Metadata: m.Metadata,
		Attempt: m.Attempts + 1, MaxAttempts: max(m.Retry.MaxAttempts, 0), Fence: m.Version,
		FireAt: m.FireAt, DueAt: m.DueAt, CreatedAt: m.CreatedAt, Timeout: m.Timeout,
	}
}

// endDelivery frees the slot of a lease whose delivery has ended or will not start. Called with mu held.
func (d *Dispatcher) endDelivery(l *lease) {
	q := l.queue
	before := l.phase
	l.phase, l.cancel = settling, nil
	q.inHand--
	switch before {
	case early:
		q.aheadOf--
	case running:
		q.running--
		q.finished.add(time.Now())
		d.leaveLane(l)
		d.pump(q)
	}
	d.place(q)
}

// forget lets go of a lease whose end needs no settlement or has one.
func (d *Dispatcher) forget(l *lease) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.held[l.Key()] == l {
		delete(d.held, l.Key())
	}
	if q := l.queue; q.limits.Concurrency > 0 { // a place is free over all workers
		q.blocked = time.Time{}
		d.place(q)
	}
}

// hold is a lease as the delivery sees it.
type hold struct {
	d   *Dispatcher
	l   *lease
	ctx *deliveryContext
}

// Until returns the instant up to which nobody else can claim the message.
func (h *hold) Until() time.Time {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	now := time.Now()
	return now.Add(h.l.left(now)).Round(0).UTC()
}

// Extend moves the delivery's deadline.
func (h *hold) Extend(d time.Duration) { h.ctx.extend(d) }

// Progress returns how long the delivery has been running.
func (h *hold) Progress() time.Duration {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	return time.Since(h.l.started)
}
