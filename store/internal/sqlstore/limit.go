package sqlstore

import (
	"math"
	"time"

	"github.com/belfryhq/belfry/store"
)

// limits is what a queue's global limits leave to a claim.
type limits struct {
	slots   int
	byRate  bool  // the rate allows fewer than the concurrency
	arrival int64 // the rate's theoretical arrival time in microseconds
}

// limits returns how many messages the queue's concurrency and rate allow now.
func (w *work) limits(qc *store.QueueClaim) (limits, error) {
	l := limits{slots: math.MaxInt}
	if w.q.lockQueue != nil && (qc.Concurrency > 0 || qc.Rate.Every > 0) { // one claim of the queue at a time
		if err := w.query(w.q.lockQueue, func(Row) error { return nil }, qc.Queue); err != nil {
			return l, err
		}
	}
	if qc.Concurrency > 0 {
		var leases int64
		if _, err := w.first(w.q.countLeases, []any{&leases}, qc.Queue, w.now); err != nil {
			return l, err
		}
		l.slots = max(0, qc.Concurrency-int(leases))
	}
	if qc.Rate.Every <= 0 {
		return l, nil
	}
	l.arrival = math.MinInt64
	if _, err := w.first(w.q.rate, []any{&l.arrival}, qc.Queue); err != nil {
		return l, err
	}
	if n := l.allowance(qc.Rate, w.now); n < l.slots {
		l.slots, l.byRate = n, true
	}
	return l, nil
}

// every returns the rate's period in microseconds, at least one.
func every(r store.Rate) int64 { return max(1, r.Every.Microseconds()) }

// allowance returns how many claims the rate allows now.
func (l *limits) allowance(r store.Rate, now int64) int {
	us := now * 1000
	room := us + int64(r.Burst)*every(r) - max(us, l.arrival)
	return int(max(0, room/every(r)))
}

// spend moves the theoretical arrival time by what was claimed.
func (l *limits) spend(w *work, qc *store.QueueClaim, n int) error {
	if qc.Rate.Every <= 0 || n == 0 {
		return nil
	}
	l.arrival = max(w.now*1000, l.arrival) + int64(n)*every(qc.Rate)
	_, err := w.exec(w.q.setRate, qc.Queue, l.arrival)
	return err
}

// freeAt returns the first whole millisecond at which the rate allows a claim.
func (l *limits) freeAt(r store.Rate) time.Time {
	return store.Ceil(time.UnixMicro(l.arrival + every(r) - int64(r.Burst)*every(r)))
}
