package belfry

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/belfryhq/belfry/internal/dispatch"
	"github.com/belfryhq/belfry/store"
)

// pollDocs is how often a worker that makes no claims looks whether the docs changed.
const pollDocs = time.Second

// sawRevision notes the docs' revision that came with a claim.
func (w *Worker) sawRevision(revision int64) {
	w.seen.Store(time.Now().UnixMilli())
	if w.revision.Swap(revision) != revision {
		select {
		case w.changed <- struct{}{}:
		default:
		}
	}
}

// watchDocs applies changed queue settings until ctx ends.
func (w *Worker) watchDocs(ctx context.Context) {
	ticker := time.NewTicker(pollDocs)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.changed:
			if err := w.configure(ctx); err != nil && ctx.Err() == nil {
				w.settings.Logger.Warn("the settings of queues could not be read", "error", err)
				w.revision.Store(-1) // so that the next look at the revision tries again
			}
		case <-ticker.C:
			if time.Since(time.UnixMilli(w.seen.Load())) < pollDocs {
				continue
			}
			revision, err := w.client.store.Docs().Revision(ctx)
			if err == nil {
				w.sawRevision(revision)
			}
		}
	}
}

// configure reads the settings of all queues and hands them to the machine. Queues whose settings were removed get none.
func (w *Worker) configure(ctx context.Context) error {
	docs, err := w.client.store.Docs().List(ctx, queueDocs, "", 0)
	if err != nil {
		return err
	}
	limits := make(map[string]dispatch.Limits, len(docs))
	for _, doc := range docs {
		name := strings.TrimPrefix(doc.Name, queueDocs)
		var settings QueueSettings
		if err := json.Unmarshal(doc.Body, &settings); err != nil {
			w.settings.Logger.Error("the settings of a queue cannot be read and are ignored", "queue", name, "error", err)
			continue
		}
		limits[name] = dispatch.Limits{
			Paused: settings.Paused, Concurrency: settings.Concurrency, Rate: settings.claimRate(),
		}
	}
	w.dispatch.Load().Configure(limits)
	return nil
}

// listen hears wake-ups of other processes until ctx ends. A lost connection costs no more than the safety scan's interval,
// which is shorter meanwhile.
func (w *Worker) listen(ctx context.Context) {
	waker, ok := store.Power[store.Waker](w.client.store)
	if !ok {
		return
	}
	for ctx.Err() == nil {
		err := waker.Listen(ctx, func() { w.listening.Store(true) }, w.hear)
		w.listening.Store(false)
		if ctx.Err() != nil {
			return
		}
		w.settings.Logger.Warn("wake-ups are not heard; scanning more often until they are", "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(time.Second + rand.N(time.Second)):
		}
	}
}
