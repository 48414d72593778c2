package sqlitestore_test

import (
	"path/filepath"
	"sync"
	"testing"

	"github.com/belfryhq/belfry/store"
	"github.com/belfryhq/belfry/store/sqlitestore"
	"github.com/belfryhq/belfry/store/storetest"
)

// files are the files of stores that were opened for the suite: where to find what a store kept.
type files struct{ paths sync.Map }

func (f *files) open(t testing.TB) store.Store {
	return f.openAt(t, filepath.Join(t.TempDir(), "belfry.db"))
}

func (f *files) openAt(t testing.TB, path string) store.Store {
	t.Helper()
	s, err := sqlitestore.Open(t.Context(), path, sqlitestore.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	f.paths.Store(store.Store(s), path)
	return s
}

// reopen closes a store and opens its file again.
func (f *files) reopen(t testing.TB, s store.Store) store.Store {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	path, _ := f.paths.LoadAndDelete(s)
	return f.openAt(t, path.(string))
}

func (f *files) options() storetest.Options { return storetest.Options{Scale: scale, Reopen: f.reopen} }

func TestStore(t *testing.T) {
	var f files
	storetest.Run(t, f.open, f.options())
}

func TestModel(t *testing.T) {
	var f files
	storetest.RunModel(t, f.open, f.options())
}

func BenchmarkStore(b *testing.B) {
	var f files
	storetest.Benchmark(b, f.open, f.options())
}
