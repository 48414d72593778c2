package dispatch

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/belfryhq/belfry/store"
)

// askEvery is how often running deliveries are looked up for stop marks.
const askEvery = time.Second

// runExtender extends the leases in hand every third of their length, asks for stop marks every second, and ends the
// deliveries whose lease is about to run out, until ctx ends. The call to the store is made beside the watch, so that a
// store that hangs does not hide a lease that ends.
func (d *Dispatcher) runExtender(ctx context.Context) {
	var calls sync.WaitGroup
	defer calls.Wait()
	tick := min(d.cfg.Lease/10, askEvery/2)
	var asked time.Time
	answered := make(chan struct{}, 1)
	answered <- struct{}{}
	for {
		if !d.awaitTick(ctx, tick) {
			return
		}
		d.dropExpired()
		d.easeLanes()
		select {
		case <-answered:
		default:
			continue // a call is under way
		}
		ask := time.Since(asked) >= askEvery
		if ask {
			asked = time.Now()
		}
		calls.Go(func() {
			d.extend(ctx)
			if ask {
				d.askForStops(ctx)
			}
			answered <- struct{}{}
		})
	}
}

// awaitTick waits for the next tick; while no lease is in hand there are none. It is false when ctx has ended.
func (d *Dispatcher) awaitTick(ctx context.Context, tick time.Duration) bool {
	d.mu.Lock()
	holding := len(d.held) > 0 || len(d.lanes) > 0
	d.mu.Unlock()
	if !holding {
		select {
		case <-ctx.Done():
			return false
		case <-d.keep:
		}
	}
	timer := time.NewTimer(tick)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// dropExpired ends what has too little left of its lease.
func (d *Dispatcher) dropExpired() {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	for _, l := range d.held {
		if l.phase != settling && l.left(now) <= d.margin() {
			d.lose(l)
		}
	}
}

// lose gives up a lease that is lost or about to be. Called with mu held.
func (d *Dispatcher) lose(l *lease) {
	if l.lost || l.phase == settling {
		return
	}
	l.lost = true
	d.stats.lost.Add(1)
	level := slog.LevelDebug // of what was not started nobody needs to know
	if l.phase == running {
		level = slog.LevelWarn
	}
	d.cfg.Logger.Log(context.Background(), level, "a lease was lost", "queue", l.Queue, "id", l.ID)
	switch l.phase {
	case running:
		if l.cancel != nil {
			l.cancel(store.ErrLeaseLost)
		}
		return // the delivery ends by itself
	case early:
		d.ahead.remove(l)
	}
	d.endDelivery(l)
	delete(d.held, l.Key())
	d.hear(l.queue, d.cfg.Clock.Now().Add(d.cfg.Lease))
}

// extend extends, in one call, all leases of which a third or more has passed.
func (d *Dispatcher) extend(ctx context.Context) {
	leases, tokens := d.collect(func(l *lease, now time.Time) bool {
		return !l.lost && l.left(now) <= l.term*2/3
	})
	if len(leases) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, max(d.cfg.Lease/3, time.Second))
	defer cancel()
	asked := time.Now()
	now := d.cfg.Clock.Now()
	held, err := d.cfg.Line.Extend(ctx, now, tokens, store.Floor(now.Add(d.cfg.Lease)))
	if err != nil {
		d.cfg.Logger.Warn("leases could not be extended", "leases", len(leases), "error", err)
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, l := range leases {
		if held[i] != store.Lost {
			l.taken, l.term = asked, d.cfg.Lease
		}
		d.obey(l, held[i])
	}
}

// askForStops looks whether messages in hand shall be stopped: those that have been for a while.
func (d *Dispatcher) askForStops(ctx context.Context) {
	leases, tokens := d.collect(func(l *lease, now time.Time) bool {
		return l.phase != settling && !l.lost && now.Sub(l.claimed) >= askEvery/2
	})
	if len(leases) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, max(d.cfg.Lease/3, time.Second))
	defer cancel()
	held, err := d.cfg.Line.Extend(ctx, d.cfg.Clock.Now(), tokens, time.Time{})
	if err != nil {
		return // extend reports an outage
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, l := range leases {
		d.obey(l, held[i])
	}
}

// obey does what the store answered about a lease.
func (d *Dispatcher) obey(l *lease, held store.Held) {
	switch held {
	case store.Lost:
		d.lose(l)
	case store.Stopping:
		l.stop = true
		if l.cancel != nil {
			l.cancel(d.cfg.ErrCanceled)
		}
	}
}

// collect returns the leases in hand that qualify, with their tokens.
func (d *Dispatcher) collect(qualifies func(*lease, time.Time) bool) (leases []*lease, tokens []store.Token) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	for _, l := range d.held {
		if qualifies(l, now) {
			leases = append(leases, l)
			tokens = append(tokens, l.Token())
		}
	}
	return leases, tokens
}
