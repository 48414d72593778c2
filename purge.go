package belfry

import (
	"context"
	"math/rand/v2"
	"time"
)

const (
	purgeEvery = 10 * time.Second
	purgeBatch = 500 // messages removed by one write, so that removing delays nothing else
	purgePause = 20 * time.Millisecond
)

// purge removes finished messages whose time has come, in small batches with a pause between, until ctx ends. Several
// workers may do so at once.
func (w *Worker) purge(ctx context.Context) {
	pause := rand.N(purgeEvery)
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		n, err := w.client.store.Purge(ctx, w.client.clock.Now(), purgeBatch)
		if err != nil && ctx.Err() == nil {
			w.settings.Logger.Warn("finished messages could not be removed", "error", err)
		}
		pause = purgeEvery
		if n == purgeBatch {
			pause = purgePause
		}
	}
}
