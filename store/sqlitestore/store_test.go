package sqlitestore_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/belfryhq/belfry/store"
	"github.com/belfryhq/belfry/store/sqlitestore"
	"github.com/belfryhq/belfry/store/storetest"
)

// open opens a store in a new file.
func open(t testing.TB) store.Store {
	t.Helper()
	return openAt(t, filepath.Join(t.TempDir(), "belfry.db"))
}

// files are the paths of open stores, so that they can be opened again.
var files sync.Map

func openAt(t testing.TB, path string) store.Store {
	t.Helper()
	s, err := sqlitestore.Open(context.Background(), path, sqlitestore.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	files.Store(s, path)
	t.Cleanup(func() {
		files.Delete(s)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// reopen closes a store and opens its file again.
func reopen(t testing.TB, s store.Store) store.Store {
	t.Helper()
	path, ok := files.Load(s)
	if !ok {
		t.Fatal("the store was not opened here")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return openAt(t, path.(string))
}

// options are the suite's: at full scale with BELFRY_SCALE=full.
func options() storetest.Options {
	o := storetest.Options{Reopen: reopen}
	if os.Getenv("BELFRY_SCALE") == "full" {
		o.Scale = storetest.Full
	}
	return o
}

func TestStore(t *testing.T) { storetest.Run(t, open, options()) }

func TestStoreBehavesLikeTheModel(t *testing.T) {
	t.Parallel()
	storetest.RunModel(t, open, options())
}

func BenchmarkStore(b *testing.B) { storetest.Benchmark(b, open, options()) }
