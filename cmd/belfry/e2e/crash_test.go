package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// load submits timers from several callers, spread over a while, to whichever server is current.
type load struct {
	t       *testing.T
	r       *receiver
	current atomic.Pointer[server]
	pick    func() *server // of several servers; nil: current
	due     sync.Map       // name → instant
}

// submit creates n timers that fall due between the given delays, and returns when all are accepted.
func (l *load) submit(n, callers int, least, most time.Duration) {
	ctx, cancel := context.WithTimeout(l.t.Context(), 2*time.Minute)
	defer cancel()
	var wait sync.WaitGroup
	next := atomic.Int64{}
	for range callers {
		wait.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				if err := l.one(ctx, fmt.Sprint("t", i), least, most); err != nil {
					l.t.Error(err)
					return
				}
			}
		})
	}
	wait.Wait()
}

// one creates a timer. While the server is away its instant may pass; then it was not accepted, for its idempotency key would have
// told, and gets a new instant.
func (l *load) one(ctx context.Context, name string, least, most time.Duration) error {
	for {
		at := time.Now().Add(least + rand.N(most-least)).Truncate(time.Millisecond)
		l.due.Store(name, at)
		pick := l.pick
		if pick == nil {
			pick = l.current.Load
		}
		err := accept(ctx, pick, l.r.timer(name, at))
		if err == nil || !strings.Contains(err.Error(), "execute_at must be in the future") {
			return err
		}
	}
}

// verdict checks what came: nothing lost, nothing early, no timer more often than allowed, and how many came twice.
func (l *load) verdict(n, mostEach int) (duplicates int) {
	l.t.Helper()
	l.r.await(l.t, n, 90*time.Second)
	for i := 1; i <= n; i++ {
		name := fmt.Sprint("t", i)
		times := l.r.times(name)
		if len(times) == 0 {
			l.t.Errorf("FAIL: timer %s was lost", name)
			continue
		}
		duplicates += len(times) - 1
		if len(times) > mostEach {
			l.t.Errorf("FAIL: timer %s came %d times", name, len(times))
		}
		due, _ := l.due.Load(name)
		if early := due.(time.Time).Sub(times[0]); early > 0 {
			l.t.Errorf("FAIL: timer %s was %v early", name, early)
		}
	}
	return duplicates
}

func TestKillNineAtAnyMomentLosesNothing(t *testing.T) {
	n, kills := 2000, 6
	if full {
		n, kills = 20_000, 60
	}
	dir := t.TempDir()
	l := &load{t: t, r: newReceiver(t)}
	l.r.slow = 5 * time.Millisecond
	l.current.Store(serve(t, dir))
	var wait sync.WaitGroup
	wait.Go(func() { l.submit(n, 8, time.Second, 4*time.Second) })
	killed := 0
	for range kills {
		time.Sleep(300*time.Millisecond + rand.N(500*time.Millisecond)) // at any moment
		l.current.Load().kill()
		killed++
		l.current.Store(serve(t, dir))
	}
	wait.Wait()
	duplicates := l.verdict(n, killed+1)
	// What may come twice after a kill is what was being delivered, or was delivered and not yet settled.
	if most := killed * (100 + 500); duplicates > most {
		t.Errorf("FAIL: %d duplicates after %d kills", duplicates, killed)
	}
	t.Logf("PASS: %d timers, %d kills, 0 lost, 0 early, %d duplicates", n, killed, duplicates)
}

func TestATermSignalUnderLoadDuplicatesNothing(t *testing.T) {
	n, stops := 2000, 6
	if full {
		n, stops = 20_000, 100
	}
	dir := t.TempDir()
	l := &load{t: t, r: newReceiver(t)}
	l.r.slow = 20 * time.Millisecond
	l.current.Store(serve(t, dir))
	var wait sync.WaitGroup
	wait.Go(func() { l.submit(n, 8, time.Second, 3*time.Second) })
	for range stops {
		time.Sleep(300*time.Millisecond + rand.N(300*time.Millisecond)) // at any moment
		if code := l.current.Load().terminate(); code != 0 {
			t.Errorf("the server ended with code %d:\n%s", code, l.current.Load().log)
		}
		l.current.Store(serve(t, dir))
	}
	wait.Wait()
	if duplicates := l.verdict(n, 1); duplicates != 0 {
		t.Errorf("FAIL: %d duplicates in %d graceful restarts", duplicates, stops)
	}
}

func TestOverdueTimersFireAfterAnOutage(t *testing.T) {
	outage := 5 * time.Second
	if full {
		outage = 2 * time.Minute
	}
	dir := t.TempDir()
	l := &load{t: t, r: newReceiver(t)}
	l.current.Store(serve(t, dir))
	l.submit(300, 8, 1500*time.Millisecond, 3*time.Second)
	l.current.Load().kill()
	before := l.r.distinct()
	time.Sleep(outage) // the outage
	s := serve(t, dir)
	l.current.Store(s)
	back := time.Now()
	l.verdict(300, 2)
	t.Logf("%d timers were overdue by up to %v; all had fired %v after the server was back", 300-before, outage, time.Since(back))
}
