package telemetry_test

import (
	"testing"
	"time"

	"github.com/belfryhq/belfry"
	"github.com/belfryhq/belfry/store"
	"github.com/belfryhq/belfry/store/memstore"
	"github.com/belfryhq/belfry/telemetry"
)

func TestShowsTheNodes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newScraped(t, telemetry.MetricsSettings{BacklogEvery: 5 * time.Second})
		inner := memstore.New()
		s := m.Store(inner)
		_, _, stop := running(t, s, belfry.Settings{}, belfry.WorkerSettings{Node: "a"})
		defer stop()
		silent := `{"named":true,"epoch":3,"seen_at":"1999-12-31T23:00:00Z","held":7,"offset_ns":1000000000}`
		if _, err := inner.Docs().Put(t.Context(), store.Doc{Name: "node/b", Body: []byte(silent)}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		m.want(1, "belfry_nodes", "state", "running")
		m.want(1, "belfry_nodes", "state", "silent")
		m.want(0, "belfry_nodes", "state", "stopped")
		m.want(0, "belfry_nodes_leases_held")
		m.want(0, "belfry_nodes_clock_offset_seconds")
	})
}
