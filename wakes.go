package belfry

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/belfryhq/belfry/store"
)

// wakeEvery is how often one queue's wake-ups are sent at most; those between are merged into one.
const wakeEvery = 10 * time.Millisecond

// wakes sends wake-ups to other processes, outside the accept: the first one of a queue at once, the following ones merged.
// Its goroutine runs only while there is something to send.
type wakes struct {
	waker  store.Waker // nil: nobody to tell
	logger *slog.Logger

	mu      sync.Mutex
	pending map[string]time.Time // queue → earliest instant not yet sent
	sent    map[string]time.Time // queue → when something was last sent
	running bool
	closed  bool
	done    sync.WaitGroup
}

func newWakes(waker store.Waker, logger *slog.Logger) *wakes {
	return &wakes{waker: waker, logger: logger, pending: map[string]time.Time{}, sent: map[string]time.Time{}}
}

// send queues the hints up to the horizon.
func (w *wakes) send(hints []store.QueueHint, horizon time.Time) {
	if w.waker == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, h := range hints {
		if h.At.After(horizon) {
			continue
		}
		if at, ok := w.pending[h.Queue]; !ok || h.At.Before(at) {
			w.pending[h.Queue] = h.At
		}
	}
	if len(w.pending) > 0 && !w.running && !w.closed {
		w.running = true
		w.done.Go(w.run)
	}
}

// run sends what is pending until nothing is, and nothing was for one interval.
func (w *wakes) run() {
	for {
		hints, wait := w.take(time.Now())
		if len(hints) > 0 {
			w.deliver(hints)
			continue
		}
		if wait == 0 {
			return
		}
		time.Sleep(wait)
	}
}

// take returns the hints that may be sent now, else how long to wait; zero and no hints: the work is done.
func (w *wakes) take(now time.Time) (hints []store.QueueHint, wait time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for queue, last := range w.sent {
		if now.Sub(last) >= wakeEvery {
			delete(w.sent, queue)
		}
	}
	for queue, at := range w.pending {
		if _, recent := w.sent[queue]; recent {
			continue
		}
		hints = append(hints, store.QueueHint{Queue: queue, At: at})
		delete(w.pending, queue)
		w.sent[queue] = now
	}
	if len(hints) == 0 && len(w.sent) == 0 || w.closed && len(w.pending) == 0 {
		w.running = false
		return hints, 0
	}
	return hints, wakeEvery
}

// deliver sends hints; a failure costs only the latency of the other processes' safety scans.
func (w *wakes) deliver(hints []store.QueueHint) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := w.waker.Wake(ctx, hints); err != nil {
		w.logger.Debug("wake-ups were not sent", "error", err)
	}
}

// close sends what is pending and waits.
func (w *wakes) close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.done.Wait()
}
