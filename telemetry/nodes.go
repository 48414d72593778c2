package telemetry

import (
	"context"
	"time"

	"github.com/belfryhq/belfry"
	"github.com/belfryhq/belfry/store"
)

// nodesQuestion asks which workers share the store.
func (b *backlog) nodesQuestion(every time.Duration) question {
	nodes := b.describe("belfry_nodes", "Workers that share the store, by state.", "state")
	held := b.describe("belfry_nodes_leases_held", "Leases in hand of all running workers, as they last told.")
	offset := b.describe("belfry_nodes_clock_offset_seconds",
		"The largest difference, either way, between the store's clock and that of a running worker's machine.")
	return question{
		gauges: []*gauge{
			{desc: nodes, labels: []string{"running"}, join: sum},
			{desc: nodes, labels: []string{"silent"}, join: sum},
			{desc: nodes, labels: []string{"stopped"}, join: sum},
			{desc: held, join: sum},
			{desc: offset, join: larger},
		},
		every: every,
		ask: func(ctx context.Context, s store.Store, now time.Time) ([]float64, error) {
			all, err := belfry.ReadNodes(ctx, s.Docs())
			if err != nil {
				return nil, err
			}
			return nodeValues(all, now), nil
		},
	}
}

// nodeValues returns the values of the question's gauges, in their order.
func nodeValues(nodes []belfry.Node, now time.Time) []float64 {
	var running, silent, stopped, held float64
	var offset time.Duration
	for i := range nodes {
		n := &nodes[i]
		switch {
		case n.Alive(now):
			running++
			held += float64(n.Held)
			offset = max(offset, n.Offset.Abs())
		case n.StoppedAt.IsZero():
			silent++
		default:
			stopped++
		}
	}
	return []float64{running, silent, stopped, held, offset.Seconds()}
}
