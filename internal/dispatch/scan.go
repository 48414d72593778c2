package dispatch

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/belfryhq/belfry/store"
)

const (
	fullScanEvery = time.Minute // a scan of everything overdue, whatever was seen before
	scanPage      = 10_000      // queues read at once
)

// runScan looks, once per safety interval, for what no wake-up has told of, until ctx ends. Each scan looks two intervals
// ahead and two back, so that every message is seen before it is due, or, when its wake-up was lost, soon after.
func (d *Dispatcher) runScan(ctx context.Context) {
	var full time.Time
	for {
		interval := d.cfg.Safety()
		now := d.cfg.Clock.Now()
		window := store.Window{
			Min: now.Add(-2*interval - time.Second), Max: now.Add(2 * interval), Prefix: d.cfg.ScanPrefix, Limit: scanPage,
		}
		if time.Since(full) >= fullScanEvery {
			window.Min = time.Time{}
		}
		if d.scan(ctx, window) && window.Min.IsZero() {
			full = time.Now()
		}
		pause := interval*9/10 + rand.N(interval/5+1)
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// scan asks which queues have something in the window and hears of each.
func (d *Dispatcher) scan(ctx context.Context, window store.Window) bool {
	for {
		ctx, cancel := context.WithTimeout(ctx, d.cfg.StoreTimeout)
		hints, err := d.cfg.Queues(ctx, window)
		cancel()
		if err != nil {
			if ctx.Err() == nil {
				d.cfg.Logger.Debug("the safety scan failed", "error", err)
			}
			return false
		}
		d.Hear(hints)
		if len(hints) < window.Limit {
			return true
		}
		window.After = hints[len(hints)-1].Queue
	}
}
