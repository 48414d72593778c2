package sqlitestore_test

import (
	"path/filepath"
	"testing"

	"github.com/belfryhq/belfry/store"
	"github.com/belfryhq/belfry/store/sqlitestore"
	"github.com/belfryhq/belfry/store/storetest"
)

// open opens a store in a new file.
func open(t testing.TB) store.Store {
	t.Helper()
	s, err := sqlitestore.Open(t.Context(), filepath.Join(t.TempDir(), "belfry.db"), sqlitestore.Settings{})
	if err != nil {
		t.Fatal(err)
	}
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
