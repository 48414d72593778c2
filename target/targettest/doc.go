// Package targettest is the conformance suite of the target contract: what every target must do, stated as laws.
//
// A target's own test tells how to make the target together with a destination whose behaviour can be chosen, and hands
// that to Run:
//
//	func TestTarget(t *testing.T) {
//		targettest.Run(t, targettest.Harness{
//			New: func(t testing.TB) (target.Target, targettest.Destination) {
//				d := startDestination(t)
//				tgt, err := mytarget.New(mytarget.Settings{})
//				if err != nil {
//					t.Fatal(err)
//				}
//				t.Cleanup(func() { tgt.Close() })
//				return tgt, d
//			},
//		})
//	}
//
// # Laws
//
// A law is one promise of the contract with a name and a rule. Each is a parallel subtest with a target and a
// destination of its own, and when it fails the first thing it prints is the rule, so that a failing run reads as a
// list of broken promises. Run it under the race detector: some promises ("keeps nothing of the delivery") are only
// wholly visible there.
//
// # Destinations
//
// A Destination records what arrives and treats it as it is told by an Answer. A protocol need not know every answer:
// laws about one that it does not know are skipped, and say so. Accept and Hang are for all.
//
// # The suite's own test
//
// Each law is run against targets with one deliberate defect each, and must fail. A law without such a defect fails the
// suite's own test: a law that cannot fail says nothing.
package targettest
