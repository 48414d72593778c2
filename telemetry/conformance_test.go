package telemetry_test

import (
	"testing"

	"github.com/belfryhq/belfry/store"
	"github.com/belfryhq/belfry/store/memstore"
	"github.com/belfryhq/belfry/store/storetest"
	"github.com/belfryhq/belfry/telemetry"
)

// TestAMeasuredStoreKeepsTheContract runs the conformance suite through the wrapper.
func TestAMeasuredStoreKeepsTheContract(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t testing.TB) store.Store {
		m := newScraped(t, telemetry.MetricsSettings{})
		s := m.Store(memstore.New())
		t.Cleanup(func() { _ = s.Close() })
		return s
	}, storetest.Options{Scale: storetest.Small})
}
