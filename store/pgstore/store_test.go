package pgstore_test

import (
	"sync"
	"testing"

	"github.com/belfryhq/belfry/internal/testserver"
	"github.com/belfryhq/belfry/store"
	"github.com/belfryhq/belfry/store/pgstore"
	"github.com/belfryhq/belfry/store/storetest"
)

func TestMain(m *testing.M) { testserver.Main(m) }

// stores opens stores for the suite and remembers where each is.
type stores struct{ urls sync.Map }

func (f *stores) open(t testing.TB) store.Store { return f.openAt(t, testserver.Postgres(t)) }

func (f *stores) openAt(t testing.TB, url string) store.Store {
	t.Helper()
	s, err := pgstore.Open(t.Context(), url, pgstore.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	f.urls.Store(store.Store(s), url)
	return s
}

// reopen closes a store and opens its database again.
func (f *stores) reopen(t testing.TB, s store.Store) store.Store {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	url, _ := f.urls.LoadAndDelete(s)
	return f.openAt(t, url.(string))
}

func (f *stores) options() storetest.Options { return storetest.Options{Reopen: f.reopen} }

func TestStore(t *testing.T) {
	var f stores
	storetest.Run(t, f.open, f.options())
}

func TestModel(t *testing.T) {
	var f stores
	storetest.RunModel(t, f.open, f.options())
}

func BenchmarkStore(b *testing.B) {
	var f stores
	storetest.Benchmark(b, f.open, f.options())
}
