package targettest

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/belfryhq/belfry/target"
)

// Law is one promise of the target contract.
type Law struct {
	// Name is short and unique: the subtest's name.
	Name string
	// Rule is the promise as a sentence: how a failure begins.
	Rule string

	check func(*env)
}

// Harness is what a target's test brings.
type Harness struct {
	// New returns a target and a destination that it can reach, both of the law's own. What has to end with the test
	// is ended by t.Cleanup.
	New func(t testing.TB) (target.Target, Destination)
	// Secrets puts the text into every part of the address and the parameters that may carry a secret, such as the
	// user info and the query of a URL, so that the delivery still reaches the destination. Nil: there is none.
	Secrets func(d *target.Delivery, text string)
	// Prompt is how soon something that happens at once has happened on a slow machine. Zero: 3 seconds. Only a
	// target that breaks a law makes the suite wait so long.
	Prompt time.Duration
}

// Laws returns every law, in the order in which Run starts them.
func Laws() []Law {
	return slices.Concat(
		contentLaws(),
		verdictLaws(),
		statusLaws(),
		contextLaws(),
		deliveryLaws(),
		secretLaws(),
	)
}

// Run checks that the target keeps the contract: every law as a parallel subtest.
func Run(t *testing.T, h Harness) {
	for _, law := range Laws() {
		t.Run(law.Name, func(t *testing.T) {
			t.Parallel()
			done := make(chan struct{})
			go func() {
				defer close(done)
				law.check(newEnv(applied{t}, t, law, h))
			}()
			<-done
		})
	}
}

// applied is a test in which a law that does not apply to the target or its destination ends as kept, and says so: a suite of one
// protocol is not incomplete because another protocol has more to it. The law runs in a goroutine of its own, which it may end.
type applied struct{ *testing.T }

// Fatalf fails the test and ends the law.
func (a applied) Fatalf(format string, args ...any) {
	a.Helper()
	a.Errorf(format, args...)
	runtime.Goexit()
}

// Skipf says why the law does not apply and ends it.
func (a applied) Skipf(format string, args ...any) {
	a.Helper()
	a.Logf("does not apply: "+format, args...)
	runtime.Goexit()
}
