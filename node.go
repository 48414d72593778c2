package belfry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/belfryhq/belfry/store"
)

// Node is a worker that shares the store, as it told of itself last.
type Node struct {
	// Name is WorkerSettings.Node, or a random one.
	Name string `json:"name"`
	// Epoch counts the runs of a named worker.
	Epoch int64 `json:"epoch"`
	// Named is whether the worker has a name of its own, under which it may come back.
	Named bool `json:"named"`
	// Host and PID say where it runs.
	Host string `json:"host"`
	PID  int    `json:"pid"`
	// Queues are the queues, or prefixes ending in "*", that it delivers from.
	Queues []string `json:"queues"`
	// StartedAt, SeenAt and StoppedAt are engine times: of the run's begin, of this report, and of its orderly end, which
	// is zero while it runs.
	StartedAt time.Time `json:"started_at"`
	SeenAt    time.Time `json:"seen_at"`
	StoppedAt time.Time `json:"stopped_at,omitzero"`
	// Offset is the store's clock less the worker's machine's; zero where the store has no clock.
	Offset time.Duration `json:"offset_ns"`
	// Held is how many leases it has, Running for how many of them the delivery is under way.
	Held    int `json:"held"`
	Running int `json:"running"`
}

const (
	// nodeEvery is how often a worker tells of itself.
	nodeEvery = 15 * time.Second
	// nodeSilent is after what time without a word a worker is taken for gone.
	nodeSilent = 4 * nodeEvery
	// nodeForget is for how long one without a name of its own is remembered after that.
	nodeForget = time.Hour
	// forgetEach: each so many words, a worker looks for such.
	forgetEach = 20
	// leaveWithin bounds the last word.
	leaveWithin = 2 * time.Second
)

// Alive reports whether the worker was running at the instant, as far as it told: it has not stopped and is not overdue
// with its word by much.
func (n *Node) Alive(now time.Time) bool {
	return n.StoppedAt.IsZero() && now.Sub(n.SeenAt) < nodeSilent
}

// nodeDocs is the prefix of the docs in which workers tell of themselves.
const nodeDocs = "node/"

// Nodes returns the workers that share the store, in the order of their names: those that run, those that fell silent
// within the last hour, and all that have names of their own.
func (c *Client) Nodes(ctx context.Context) ([]Node, error) { return ReadNodes(ctx, c.store.Docs()) }

// ReadNodes is Nodes for those who have a store and no client.
func ReadNodes(ctx context.Context, s store.Docs) ([]Node, error) {
	docs, err := s.List(ctx, nodeDocs, "", 0)
	if err != nil {
		return nil, err
	}
	nodes := make([]Node, len(docs))
	for i, doc := range docs {
		if err := decodeNode(doc, &nodes[i]); err != nil {
			return nil, err
		}
	}
	return nodes, nil
}

func decodeNode(doc store.Doc, n *Node) error {
	name := strings.TrimPrefix(doc.Name, nodeDocs)
	if len(doc.Body) > 0 {
		if err := json.Unmarshal(doc.Body, n); err != nil {
			return fmt.Errorf("node %q: %w", name, err)
		}
	}
	n.Name = name
	return nil
}

// presence is a run of a worker as others see it. One goroutine uses it at a time.
type presence struct {
	worker  *Worker
	node    Node
	version int64 // of the doc
}

// register makes this run a new incarnation of its node and ends the leases of earlier ones.
func (w *Worker) register(ctx context.Context) (*presence, error) {
	now := w.client.clock.Now()
	p := &presence{worker: w, node: Node{
		Name: w.settings.Node, Named: w.settings.Node != "", PID: os.Getpid(), StartedAt: now, SeenAt: now,
	}}
	p.node.Host, _ = os.Hostname() // empty if the system does not know
	for _, q := range w.settings.Queues {
		p.node.Queues = append(p.node.Queues, q.Name)
	}
	if !p.node.Named {
		p.node.Name, p.node.Epoch = uuid.NewString(), 1
		return p, p.put(ctx)
	}
	if err := checkName("node", p.node.Name); err != nil {
		return nil, err
	}
	if err := p.next(ctx); err != nil {
		return nil, err
	}
	freed, err := w.client.store.Forfeit(ctx, w.client.clock.Now(), p.node.Name, p.node.Epoch)
	if freed > 0 {
		w.settings.Logger.Info("leases of the last run were ended", "node", p.node.Name, "leases", freed)
	}
	return p, err
}

// next takes the epoch after the last one.
func (p *presence) next(ctx context.Context) error {
	for range maxConflicts {
		doc, err := p.worker.client.store.Docs().Get(ctx, nodeDocs+p.node.Name)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		var last Node
		if err := decodeNode(doc, &last); err != nil {
			return err
		}
		p.node.Epoch, p.version = last.Epoch+1, doc.Version
		if err := p.put(ctx); !errors.Is(err, ErrConflict) {
			return err
		}
	}
	return ErrConflict
}

// put writes the doc.
func (p *presence) put(ctx context.Context) error {
	body, err := json.Marshal(p.node)
	if err != nil {
		return err
	}
	version, err := p.worker.client.store.Docs().Put(ctx, store.Doc{Name: nodeDocs + p.node.Name, Version: p.version, Body: body})
	if err == nil {
		p.version = version
	}
	return err
}

// keep tells of the worker until ctx ends, and forgets those that are long gone.
func (p *presence) keep(ctx context.Context) {
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-time.After(nodeEvery - nodeEvery/10 + rand.N(nodeEvery/5)):
		}
		p.report(ctx)
		if n%forgetEach == 0 {
			p.forget(ctx)
		}
	}
}

// report writes what the worker does now. That the doc was changed by another tells of a second worker under the name.
func (p *presence) report(ctx context.Context) {
	w := p.worker
	stats := w.Stats()
	p.node.SeenAt, p.node.Offset = w.client.clock.Now(), w.client.clock.Skew()
	p.node.Held, p.node.Running = stats.Held, stats.Running
	err := p.put(ctx)
	switch {
	case err == nil || ctx.Err() != nil:
	case errors.Is(err, ErrConflict):
		p.recover(ctx)
	default:
		w.settings.Logger.Warn("this worker could not tell the others of itself", "node", p.node.Name, "error", err)
	}
}

// recover finds out who changed the doc: a write of this worker whose answer was lost, or another worker.
func (p *presence) recover(ctx context.Context) {
	doc, err := p.worker.client.store.Docs().Get(ctx, nodeDocs+p.node.Name)
	if errors.Is(err, ErrNotFound) {
		p.version = 0 // forgotten after a long silence
		return
	}
	if err != nil {
		return
	}
	var other Node
	if err := decodeNode(doc, &other); err != nil || other.Epoch <= p.node.Epoch {
		p.version = doc.Version
		return
	}
	p.worker.settings.Logger.Error("another worker runs under the same name; give each a name of its own",
		"node", p.node.Name, "host", other.Host, "pid", other.PID)
}

// forget removes workers without names of their own that fell silent long ago.
func (p *presence) forget(ctx context.Context) {
	docs, err := p.worker.client.store.Docs().List(ctx, nodeDocs, "", 0)
	if err != nil {
		return
	}
	now := p.worker.client.clock.Now()
	for _, doc := range docs {
		var n Node
		if err := decodeNode(doc, &n); err != nil || n.Named || now.Sub(n.SeenAt) < nodeForget {
			continue
		}
		_ = p.worker.client.store.Docs().Delete(ctx, doc.Name, doc.Version) // another may have been faster
	}
}

// leave says that the worker has ended in order. It outlives the end of ctx for a moment.
func (p *presence) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveWithin)
	defer cancel()
	var err error
	if p.node.Named {
		p.node.StoppedAt = p.worker.client.clock.Now()
		p.node.SeenAt, p.node.Held, p.node.Running = p.node.StoppedAt, 0, 0
		err = p.put(ctx)
	} else {
		err = p.worker.client.store.Docs().Delete(ctx, nodeDocs+p.node.Name, p.version)
	}
	if err != nil && !errors.Is(err, ErrConflict) && !errors.Is(err, ErrNotFound) {
		p.worker.settings.Logger.Warn("this worker could not tell the others that it ended", "node", p.node.Name, "error", err)
	}
}
