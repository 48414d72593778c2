package targettest

import (
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
			law.check(newEnv(t, t, law, h))
		})
	}
}
