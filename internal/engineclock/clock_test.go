package engineclock

import (
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfryhq/belfry/store"
)

// host is a machine whose wall clock is bubble time plus a step that tests move, as an administrator or a suspension
// would; its monotonic clock is the bubble's.
type host struct {
	mu   sync.Mutex
	step time.Duration
}

func (h *host) wall() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Now().Round(0).Add(h.step)
}

func (h *host) set(step time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.step = step
}

// reply observes a store whose clock is bubble time plus an offset, in a reply that took the delay.
func reply(c *Clock, offset, delay time.Duration) {
	at := time.Now().Add(offset)
	time.Sleep(delay)
	c.Observe(at, time.Now())
}

// bubble runs a test with a clock of the default tolerance on a host.
func bubble(t *testing.T, f func(t *testing.T, c *Clock, h *host)) {
	synctest.Test(t, func(t *testing.T) {
		c, h := New(0), new(host)
		c.wall = h.wall
		f(t, c, h)
	})
}

// expectAhead checks by how much engine time is ahead of bubble time, rounded down to the millisecond.
func expectAhead(t *testing.T, rule string, c *Clock, ahead time.Duration) {
	t.Helper()
	now := c.Now()
	if want := store.Floor(time.Now().Add(ahead)); !now.Equal(want) || now.Location() != time.UTC {
		t.Errorf("%s: engine time is ahead by %v, want %v", rule, now.Sub(time.Now().Round(0)), ahead)
	}
}

func TestWithoutAStoreClockTheLocalOneDecides(t *testing.T) {
	bubble(t, func(t *testing.T, c *Clock, h *host) {
		time.Sleep(1999 * time.Microsecond)
		expectAhead(t, "unobserved", c, 0)
		c.Observe(time.Time{}, time.Now())
		h.set(time.Hour)
		expectAhead(t, "a store without a clock", c, time.Hour)
		if c.Skew() != 0 || c.Excess() {
			t.Errorf("skew %v", c.Skew())
		}
		if d := c.Until(time.Now().Add(time.Hour + time.Second)); d != time.Second-999*time.Microsecond+time.Millisecond && d != time.Second {
			t.Errorf("until %v", d)
		}
	})
}

func TestTheStoreClockDecidesWithinTheTolerance(t *testing.T) {
	for _, c := range []struct {
		rule               string
		offset, step, want time.Duration
	}{
		{"equal clocks", 0, 0, 0},
		{"a local clock an hour ahead makes nothing early", 0, time.Hour, 0},
		{"a store an hour ahead is followed up to the tolerance", time.Hour, 0, 250 * time.Millisecond},
		{"a store a little ahead is followed", 100 * time.Millisecond, 0, 100 * time.Millisecond},
		{"a store behind is followed", -time.Minute, 0, -time.Minute},
		{"a local clock behind makes it late", 0, -time.Hour, -time.Hour + 250*time.Millisecond},
	} {
		t.Run(c.rule, func(t *testing.T) {
			bubble(t, func(t *testing.T, clock *Clock, h *host) {
				h.set(c.step)
				reply(clock, c.offset, 0)
				expectAhead(t, c.rule, clock, c.want)
				if skew := clock.Skew(); skew != c.offset-c.step {
					t.Errorf("skew %v", skew)
				}
				if want := max(c.offset-c.step, c.step-c.offset) > 250*time.Millisecond; clock.Excess() != want {
					t.Errorf("excess %v", !want)
				}
			})
		})
	}
}

func TestTheToleranceIsASetting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(time.Second)
		reply(c, time.Hour, 0)
		expectAhead(t, "one second", c, time.Second)
	})
}

func TestAStepOfTheLocalClockMakesNothingEarly(t *testing.T) {
	bubble(t, func(t *testing.T, c *Clock, h *host) {
		reply(c, 0, 0)
		h.set(time.Hour)
		expectAhead(t, "forward", c, 0)
		h.set(-time.Hour)
		expectAhead(t, "back", c, -time.Hour+250*time.Millisecond)
		h.set(0)
		expectAhead(t, "set right", c, 0)
	})
}

func TestACarriedObservationIsNeverEarlyHoweverOld(t *testing.T) {
	bubble(t, func(t *testing.T, c *Clock, _ *host) {
		reply(c, 0, 0)
		time.Sleep(time.Second)
		expectAhead(t, "a second", c, -100*time.Microsecond)
		time.Sleep(24*time.Hour - time.Second)
		expectAhead(t, "a day", c, -8640*time.Millisecond)
		reply(c, 0, 0)
		expectAhead(t, "observed again", c, 0)
	})
}

func TestASlowReplyDoesNotPushTheEngineBack(t *testing.T) {
	bubble(t, func(t *testing.T, c *Clock, _ *host) {
		reply(c, 0, 0)
		reply(c, 0, 700*time.Millisecond)
		expectAhead(t, "after a slow reply", c, -70*time.Microsecond)
		if c.Excess() {
			t.Errorf("a slow reply raises the alarm: skew %v", c.Skew())
		}
	})
}

func TestAnObservationThatCameLateIsNotTakenForANewerOne(t *testing.T) {
	bubble(t, func(t *testing.T, c *Clock, _ *host) {
		at, received := time.Now(), time.Now().Add(5*time.Millisecond)
		time.Sleep(900 * time.Millisecond)
		reply(c, 0, 0)
		c.Observe(at, received)
		expectAhead(t, "the better one stays", c, 0)
	})
}

func TestAStepForwardOfTheStoreCountsAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, c *Clock, _ *host) {
		reply(c, -200*time.Millisecond, 0)
		reply(c, 0, 0)
		expectAhead(t, "forward", c, 0)
	})
}

func TestALargeStepBackOfTheStoreCountsAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, c *Clock, _ *host) {
		reply(c, 0, 0)
		reply(c, -time.Hour, 0)
		expectAhead(t, "back", c, -time.Hour)
		if !c.Excess() || c.Skew() != -time.Hour {
			t.Errorf("skew %v", c.Skew())
		}
		reply(c, 0, 0)
		expectAhead(t, "set right", c, 0)
	})
}

func TestWhatWasSaidBeforeAStepBackIsForgotten(t *testing.T) {
	bubble(t, func(t *testing.T, c *Clock, _ *host) {
		reply(c, 0, 0)
		reply(c, 0, 50*time.Millisecond)
		reply(c, -time.Minute, 0)
		for range 15 {
			time.Sleep(time.Second)
			reply(c, -time.Minute, 30*time.Millisecond)
			if ahead := c.Now().Sub(time.Now().Add(-time.Minute)); ahead > 0 {
				t.Fatalf("ahead of the store by %v", ahead)
			}
		}
	})
}

func TestASmallStepBackOfTheStoreIsFollowedInTwentySeconds(t *testing.T) {
	bubble(t, func(t *testing.T, c *Clock, _ *host) {
		// Replies of changing delay, once a second: the first of them is the best before the step.
		for i := range 5 {
			reply(c, 0, time.Duration(i)*10*time.Millisecond)
			time.Sleep(time.Second)
		}
		const back = -500 * time.Millisecond
		stepped := time.Now()
		for c.Now().After(time.Now().Add(back)) {
			if time.Since(stepped) > 2*keepFor {
				t.Fatalf("after %v engine time is still ahead of the store by %v", time.Since(stepped), c.Now().Sub(time.Now().Add(back)))
			}
			reply(c, back, 20*time.Millisecond)
			time.Sleep(time.Second)
		}
		if time.Since(stepped) < time.Second {
			t.Error("a reply's delay would have been followed at once")
		}
	})
}

func TestSlowRepliesThroughoutAreFollowedByTheBestOfThem(t *testing.T) {
	bubble(t, func(t *testing.T, c *Clock, _ *host) {
		reply(c, 0, 0)
		for i := range 30 {
			reply(c, 0, []time.Duration{400, 80, 300}[i%3]*time.Millisecond)
			time.Sleep(700 * time.Millisecond)
			if late := time.Since(c.Now()); late > 83*time.Millisecond {
				t.Errorf("late by %v after reply %d", late, i)
			}
		}
		if late := time.Since(c.Now()); late < 80*time.Millisecond {
			t.Errorf("late by %v, less than any reply of the last twenty seconds", late)
		}
	})
}

// A suspension stops the monotonic clock, here the bubble's, while the wall clock and the store's go on.
func TestASuspensionMakesLateUntilTheNextObservation(t *testing.T) {
	bubble(t, func(t *testing.T, c *Clock, h *host) {
		reply(c, 0, 0)
		since := time.Now()
		time.Sleep(time.Second)
		h.set(time.Hour)
		expectAhead(t, "just awake", c, -100*time.Microsecond) // an hour less than the store has
		if elapsed := c.Elapsed(since); elapsed != time.Hour+time.Second {
			t.Errorf("elapsed %v", elapsed)
		}
		reply(c, time.Hour, 0)
		expectAhead(t, "observed", c, time.Hour)
	})
}

func TestElapsedIsTheLargerOfBothClocks(t *testing.T) {
	bubble(t, func(t *testing.T, c *Clock, h *host) {
		since := time.Now()
		time.Sleep(time.Minute)
		for step, want := range map[time.Duration]time.Duration{0: time.Minute, time.Hour: time.Hour + time.Minute, -time.Hour: time.Minute} {
			h.set(step)
			if got := c.Elapsed(since); got != want {
				t.Errorf("step %v: elapsed %v", step, got)
			}
		}
		if got := c.Elapsed(time.Now().Add(2 * time.Hour)); got != 0 {
			t.Errorf("since the future: %v", got)
		}
	})
}

func TestSleepingUntilAnInstantReachesIt(t *testing.T) {
	for _, offset := range []time.Duration{0, 100 * time.Millisecond, time.Hour, -time.Hour} {
		for _, step := range []time.Duration{0, time.Hour, -time.Hour} {
			for _, sleep := range []time.Duration{time.Millisecond, 1500 * time.Microsecond, time.Second, 400 * 24 * time.Hour} {
				bubble(t, func(t *testing.T, c *Clock, h *host) {
					h.set(step)
					time.Sleep(300 * time.Microsecond)
					reply(c, offset, 0)
					until := c.Now().Add(sleep)
					d := c.Until(until)
					time.Sleep(d - 2*time.Microsecond)
					if d > 2*time.Microsecond && !c.Now().Before(until) {
						t.Errorf("offset %v, step %v, sleep %v: %v is too long", offset, step, sleep, d)
					}
					time.Sleep(2 * time.Microsecond)
					if c.Now().Before(until) || c.Until(until) != 0 {
						t.Errorf("offset %v, step %v, sleep %v: %v is too short", offset, step, sleep, d)
					}
				})
			}
		}
	}
}

func TestUntilTheEndOfTimeDoesNotOverflow(t *testing.T) {
	bubble(t, func(t *testing.T, c *Clock, _ *host) {
		if d := c.Until(store.Never); d != math.MaxInt64 {
			t.Errorf("unobserved: %v", d)
		}
		reply(c, 0, 0)
		if d := c.Until(store.Never); d != math.MaxInt64 {
			t.Errorf("observed: %v", d)
		}
		reply(c, -2*time.Hour, 0)
		if d := c.Until(time.Now().Add(math.MaxInt64 - time.Hour)); d != math.MaxInt64 {
			t.Errorf("observed behind: %v", d)
		}
		if d := c.Until(time.Time{}); d != 0 {
			t.Errorf("the past: %v", d)
		}
	})
}

func TestAClockMayBeUsedConcurrently(t *testing.T) {
	c := New(0)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 500 {
				now := time.Now()
				c.Observe(now, now)
				if told := c.Now(); told.After(time.Now().Round(0)) || c.Until(now) < 0 {
					t.Errorf("engine time %v is ahead of the clock it was told", told)
				}
			}
		})
	}
	wg.Wait()
}
