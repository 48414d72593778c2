package memstore_test

import (
	"testing"

	"github.com/belfryhq/belfry/store"
	"github.com/belfryhq/belfry/store/memstore"
	"github.com/belfryhq/belfry/store/storetest"
)

func open(t testing.TB) store.Store {
	s := memstore.New()
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestStore(t *testing.T) {
	storetest.Run(t, open, storetest.Options{})
}

func TestModel(t *testing.T) {
	storetest.RunModel(t, open, storetest.Options{})
}
