package storetest_test

import (
	"testing"

	"github.com/belfryhq/belfry/store"
	"github.com/belfryhq/belfry/store/memstore"
	"github.com/belfryhq/belfry/store/storetest"
)

// open opens an empty memory store.
func open(t testing.TB) store.Store {
	s := memstore.New()
	t.Cleanup(func() { s.Close() })
	return s
}

func TestMemoryKeepsTheLaws(t *testing.T) {
	storetest.Run(t, open, storetest.Options{})
}
