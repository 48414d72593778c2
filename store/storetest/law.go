package storetest

import (
	"slices"
	"testing"
)

// Law is one promise of the store contract.
type Law struct {
	// Name is short and unique: the subtest's name.
	Name string
	// Rule is the promise as a sentence: how a failure begins.
	Rule string

	check func(*env)
}

// Laws returns every law, in the order in which Run runs them.
func Laws() []Law {
	return slices.Concat(
		fieldLaws(),
		putLaws(),
		claimLaws(),
		orderLaws(),
		leaseLaws(),
		settleLaws(),
		followUpLaws(),
		replaceLaws(),
		listLaws(),
		gateLaws(),
		limitLaws(),
		keepingLaws(),
		wholeLaws(),
	)
}

// Run checks that the store keeps the contract: every law as a parallel subtest.
func Run(t *testing.T, open Opener, o Options) {
	o = o.fromEnvironment()
	s := open(t)
	for _, law := range Laws() {
		t.Run(law.Name, func(t *testing.T) {
			t.Parallel()
			law.check(newEnv(t, t, law, s, open, o))
		})
	}
}
