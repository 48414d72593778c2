// Package storetest is the conformance suite of the store contract: what every store must do, stated as laws.
//
// A store's own test opens an empty store and hands it to Run:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t testing.TB) store.Store {
//			s, err := mystore.Open(t.Context(), t.TempDir())
//			if err != nil {
//				t.Fatal(err)
//			}
//			t.Cleanup(func() { s.Close() })
//			return s
//		}, storetest.Options{})
//	}
//
// # Laws
//
// A law is one promise of the contract with a name and a rule. Each is a subtest, and when it fails the first thing it
// prints is the rule, so that a failing run reads as a list of broken promises. Laws bring their own `now` and never
// read the clock; they use queues, owners and docs of their own and can therefore share one store and run at once.
// Those that look at a store as a whole, or close it, open another.
//
// # Scale
//
// Options.Scale says how much data the laws of size use: Small for servers that are slow, Full for a run by hand or by
// night, Normal for all else. With BELFRY_SCALE=full in the environment all stores are tested at full scale.
//
// # Beside the laws
//
// RunModel plays random operations on the store and on a small model of it and compares all they tell. It prints its seed,
// and shrinks a program that fails; BELFRY_SEED and BELFRY_MODEL_STEPS play one again or a longer one. Benchmark measures
// accepting, claiming with settling, and listing with few and with many messages waiting.
//
// # The suite's own test
//
// Each law is run against stores with one deliberate defect each, and must fail. A law without such a defect fails the
// suite's own test: a law that cannot fail says nothing.
package storetest
