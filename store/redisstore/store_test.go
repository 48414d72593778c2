package redisstore_test

import (
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"github.com/belfryhq/belfry/store"
	"github.com/belfryhq/belfry/store/redisstore"
	"github.com/belfryhq/belfry/store/storetest"
)

var count atomic.Int64

func open(t testing.TB) store.Store {
	t.Helper()
	url := os.Getenv("BELFRY_TEST_REDIS_URL")
	s, err := redisstore.Open(t.Context(), url, redisstore.Settings{Prefix: fmt.Sprintf("t%d-%d", os.Getpid(), count.Add(1))})
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

func TestStore(t *testing.T) { storetest.Run(t, open, storetest.Options{}) }

func TestModel(t *testing.T) { storetest.RunModel(t, open, storetest.Options{}) }

func BenchmarkStore(b *testing.B) { storetest.Benchmark(b, open, storetest.Options{}) }
