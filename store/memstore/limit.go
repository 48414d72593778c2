package memstore

import (
	"math"
	"time"

	"github.com/belfryhq/belfry/store"
)

// noArrival is the theoretical arrival time of a queue whose rate was never used.
const noArrival = math.MinInt64

// limits is what a queue's global limits leave to a claim.
type limits struct {
	slots  int
	byRate bool // the rate allows fewer than the concurrency
}

// limits returns how many messages the queue's concurrency and rate allow now.
func (q *queue) limits(qc *store.QueueClaim, now instant) limits {
	l := limits{slots: math.MaxInt}
	if qc.Concurrency > 0 {
		l.slots = max(0, qc.Concurrency-q.inFlight(now))
	}
	if qc.Rate.Every > 0 {
		if n := q.allowance(qc.Rate, now); n < l.slots {
			l.slots, l.byRate = n, true
		}
	}
	return l
}

// inFlight counts the live leases.
func (q *queue) inFlight(now instant) int {
	n := 0
	for _, r := range q.leased {
		if r.visibleAt > now {
			n++
		}
	}
	return n
}

// every returns the rate's period in microseconds, at least one.
func every(r store.Rate) int64 { return max(1, r.Every.Microseconds()) }

// allowance returns how many claims the rate allows now: the largest n with T' + n·Every ≤ now + Burst·Every, where T'
// is the later of the theoretical arrival time and now.
func (q *queue) allowance(r store.Rate, now instant) int {
	us := micros(now)
	room := us + int64(r.Burst)*every(r) - max(us, q.arrival)
	return int(max(0, room/every(r)))
}

// spend moves the theoretical arrival time by what was claimed.
func (q *queue) spend(r store.Rate, now instant, n int) {
	if r.Every <= 0 || n == 0 {
		return
	}
	q.arrival = max(micros(now), q.arrival) + int64(n)*every(r)
}

// freeAt returns the first whole millisecond at which the rate allows a claim.
func (q *queue) freeAt(r store.Rate) time.Time {
	return store.Ceil(time.UnixMicro(q.arrival + every(r) - int64(r.Burst)*every(r)))
}

func micros(i instant) int64 { return int64(i) * 1000 }
