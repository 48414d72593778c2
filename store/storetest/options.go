package storetest

import (
	"os"
	"testing"

	"github.com/belfryhq/belfry/store"
)

// Opener opens a fresh, empty store and registers its clean-up with t. It may be called often and concurrently; no two
// stores that it returned share data.
type Opener func(t testing.TB) store.Store

// Options are what the suite must know about a store. The zero value runs all that needs to know nothing.
type Options struct {
	// Scale is how much data the laws of size use. BELFRY_SCALE=full in the environment makes it Full.
	Scale Scale
	// Reopen closes s and opens what it kept, with its clean-up registered with t; nil: the store cannot be reopened.
	Reopen func(t testing.TB, s store.Store) store.Store
}

// fromEnvironment returns the options with what the environment says.
func (o Options) fromEnvironment() Options {
	if os.Getenv("BELFRY_SCALE") == "full" {
		o.Scale = Full
	}
	return o
}

// Scale is a size of data.
type Scale int

// The scales.
const (
	Normal Scale = iota // thousands: every test run
	Small               // hundreds: servers that are slow
	Full                // a million: by hand or by night
)

// pick returns the number for the scale.
func (s Scale) pick(small, normal, full int) int {
	switch s {
	case Small:
		return small
	case Full:
		return full
	default:
		return normal
	}
}
