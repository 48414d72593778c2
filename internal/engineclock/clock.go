// Package engineclock tells the time that the engine acts by, when the store's clock and the machine's may both be wrong.
//
// # The rule
//
// Engine time is min(the store's clock, the local wall clock + tolerance), rounded down to the millisecond. All nodes of
// a store share its clock, so a node whose own clock is ahead delivers nothing early; a store whose clock jumps ahead
// makes nothing early by more than the tolerance, because the local clock does not follow. A clock that is behind, on
// either side, makes things late there, never early. Without a store's clock, local time decides.
//
// # Carrying an observation on
//
// The store's clock is known from replies. A reply took some time to arrive, so "what it said" is not after the store's
// clock at its receipt; from there it is carried on by Go's monotonic clock, which steps of the wall clock do not move.
// Two machines' oscillators differ by some 50 ppm each, so the carried time runs slower by 100 ppm: it stays an
// underestimate however old it is, 0.1 ms late for each second without an observation.
//
// # Which observation counts
//
// Of two underestimates the larger is the better: a slow reply must not push the engine back by its delay. That holds
// as long as the store's clock does not step.
//   - A step forward makes the next observation the larger one; it counts at once.
//   - A step back makes the kept one too large. A difference beyond a second is therefore taken for a step and followed
//     at once; if it was only a slow reply, the next prompt one makes up for it, and the cost is lateness. A smaller
//     difference may be a reply's delay: the kept observation goes on for at most ten seconds and is then replaced by
//     the best of those that came since, so a step back is followed within twice that. Meanwhile the rule's other half
//     still bounds the error.
//   - A suspended machine stops Go's monotonic clock, and the carried time falls behind by the length of the suspension:
//     late, never early, until the next observation, which counts at once. Whoever asks how long something has been held
//     must not be fooled by that and uses Elapsed.
package engineclock

import (
	"math"
	"sync"
	"time"

	"github.com/belfryhq/belfry/store"
)

// DefaultTolerance is by how much engine time may be ahead of the local clock.
const DefaultTolerance = 250 * time.Millisecond

const (
	// driftPart: carried time loses one part in so many.
	driftPart = 10_000
	// keepFor is how long an observation is preferred to later, smaller ones.
	keepFor = 10 * time.Second
	// stepBack is the difference that is no reply's delay any more.
	stepBack = time.Second
)

// Clock is the engine's clock. It is safe for concurrent use.
type Clock struct {
	tolerance time.Duration
	wall      func() time.Time // the local wall clock

	mu   sync.Mutex
	best sample // what engine time is carried on from; zero before the first observation
	next sample // the best of those received after it; zero when there is none
	skew time.Duration
}

// sample is the store's clock as of a local instant.
type sample struct {
	store time.Time
	local time.Time // with a monotonic reading
}

// at returns the store's clock at a local instant, or a little less.
func (s sample) at(local time.Time) time.Time {
	elapsed := local.Sub(s.local)
	return s.store.Add(elapsed - elapsed/driftPart)
}

func (s sample) known() bool { return !s.local.IsZero() }

// New returns a clock; a tolerance of zero or less means DefaultTolerance.
func New(tolerance time.Duration) *Clock {
	if tolerance <= 0 {
		tolerance = DefaultTolerance
	}
	return &Clock{tolerance: tolerance, wall: time.Now}
}

// Observe takes note of the store's clock as a reply told it, received at the local instant, which is what time.Now
// returned then: its monotonic reading is used. A zero storeNow, of a store without a clock, is ignored. Observations
// may come in any order.
func (c *Clock) Observe(storeNow, received time.Time) {
	if storeNow.IsZero() {
		return
	}
	now, wall := time.Now(), c.wall().Round(0)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.take(sample{storeNow.Round(0), received}, now)
	c.skew = c.best.at(now).Sub(wall)
}

// take decides which samples are kept.
func (c *Clock) take(s sample, now time.Time) {
	if !c.best.known() {
		c.best = s
		return
	}
	behind := c.best.at(now).Sub(s.at(now))
	if behind <= 0 || behind > stepBack {
		c.best, c.next = s, sample{}
		return
	}
	if !c.next.known() || !s.at(now).Before(c.next.at(now)) {
		c.next = s
	}
	if now.Sub(c.best.local) >= keepFor {
		c.best, c.next = c.next, sample{}
	}
}

// Now returns engine time: UTC, in whole milliseconds, without a monotonic reading. It may go back when a clock does.
func (c *Clock) Now() time.Time {
	now, wall := time.Now(), c.wall().Round(0)
	best := c.observed()
	if !best.known() {
		return store.Floor(wall)
	}
	return store.Floor(store.Earlier(best.at(now), wall.Add(c.tolerance)))
}

// Until returns how long to sleep by the monotonic clock until engine time reaches t, if no clock steps meanwhile and
// nothing is observed; zero when it has. Because either may happen, check Now after the sleep and sleep again.
func (c *Clock) Until(t time.Time) time.Duration {
	now, wall := time.Now(), c.wall().Round(0)
	t = store.Ceil(t)
	best := c.observed()
	if !best.known() {
		return max(t.Sub(wall), 0)
	}
	return max(undrifted(t.Sub(best.at(now))), t.Sub(wall.Add(c.tolerance)), 0)
}

// undrifted returns how long carried time takes for d, rounded up.
func undrifted(d time.Duration) time.Duration {
	if d <= 0 {
		return d
	}
	more := d/(driftPart-1) + 1
	if d > math.MaxInt64-more {
		return math.MaxInt64
	}
	return d + more
}

// Skew returns the store's clock less the local one, as of the last observation and by the best estimate then; zero
// before the first. A reply's delay makes it too small by as much.
func (c *Clock) Skew() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.skew
}

// Excess reports whether the clocks differ by more than the tolerance, either way, which somebody should look at.
func (c *Clock) Excess() bool {
	skew := c.Skew()
	return skew > c.tolerance || skew < -c.tolerance
}

// Elapsed returns how long ago the local instant was, at least: the larger of what the monotonic and the wall clock
// tell, because the one stops while the machine is suspended and the other may be set back. It is for what must not be
// underestimated, such as the age of a lease; since is what time.Now returned then.
func (c *Clock) Elapsed(since time.Time) time.Duration {
	return max(time.Since(since), c.wall().Round(0).Sub(since.Round(0)), 0)
}

func (c *Clock) observed() sample {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.best
}
