package dispatch

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/belfryhq/belfry/internal/lifecycle"
	"github.com/belfryhq/belfry/store"
)

// settle writes a settlement and keeps trying while the store fails: the token stays current until somebody else claims the
// message, and what was delivered must not be delivered again.
func (d *Dispatcher) settle(l *lease, s store.Settlement) {
	defer d.forget(l)
	pause := minPause
	for {
		results, err := d.settles.Do(d.settling, s)
		if err == nil {
			d.settled(l, s, results[0])
			return
		}
		if d.settling.Err() != nil || errors.Is(err, store.ErrClosed) {
			d.cfg.Logger.Error("an outcome could not be written; the message comes due again when its lease ends",
				"queue", l.Queue, "id", l.ID, "error", err)
			return
		}
		if !d.rest(pause/2 + rand.N(pause/2+1)) {
			continue // the last try, on a context that has ended
		}
		pause = min(2*pause, maxPause)
	}
}

// rest sleeps unless settling ends first.
func (d *Dispatcher) rest(pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-d.settling.Done():
		return false
	}
}

// settled takes note of one settlement's result.
func (d *Dispatcher) settled(l *lease, s store.Settlement, err error) {
	if err != nil {
		d.stats.lost.Add(1)
		d.cfg.Logger.Warn("an outcome came too late: the lease was lost", "queue", l.Queue, "id", l.ID, "error", err)
		return
	}
	hints := make([]store.QueueHint, 0, 1+len(s.FollowUps))
	if s.Outcome == store.OutcomeRetry || s.Outcome == store.OutcomeRelease {
		hints = append(hints, store.QueueHint{Queue: l.Queue, At: s.At})
	}
	for i := range s.FollowUps {
		hints = append(hints, store.QueueHint{Queue: s.FollowUps[i].Queue, At: s.FollowUps[i].DueAt})
	}
	if len(hints) > 0 {
		d.cfg.Hint(hints)
	}
}

// writeSettlements writes one batch of the group commit. While that fails nothing is claimed: what cannot be settled must
// not be delivered.
func (d *Dispatcher) writeSettlements(ctx context.Context, batch []store.Settlement) ([]error, error) {
	results, err := d.cfg.Line.Settle(ctx, d.cfg.Clock.Now(), batch)
	d.mu.Lock()
	was := d.broken
	d.broken = err != nil
	d.mu.Unlock()
	switch {
	case err != nil && !was:
		d.cfg.Logger.Error("outcomes cannot be written; nothing is claimed until they can", "error", err)
	case err == nil && was:
		d.cfg.Logger.Info("outcomes can be written again")
		notify(d.claim)
	}
	return results, err
}

// giveBack releases the leases that qualify and were not started, uncounted, so that others can have them at once. Called
// with mu held.
func (d *Dispatcher) giveBack(qualifies func(*lease) bool) {
	now := d.cfg.Clock.Now()
	for _, l := range d.held {
		if l.phase != early && l.phase != waiting && l.phase != parked || !qualifies(l) {
			continue
		}
		if l.phase == early {
			d.ahead.remove(l)
		}
		l.lost = true // whoever pops it from a line passes it over
		d.endDelivery(l)
		d.deliveries.Go(func() { d.settle(l, lifecycle.Unstarted(&l.Message, now)) })
	}
}
