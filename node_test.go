package belfry_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/belfryhq/belfry"
	"github.com/belfryhq/belfry/store/memstore"
)

func nodesOf(t *testing.T, e *engine) []belfry.Node {
	t.Helper()
	nodes, err := e.Nodes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return nodes
}

func TestARunningWorkerTellsOfItself(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := running(t, belfry.WorkerSettings{Node: "a", Queues: []belfry.QueueWorker{{Name: "q"}, {Name: "mail/*"}}})
		pass(time.Hour)
		nodes := nodesOf(t, e)
		if len(nodes) != 1 || nodes[0].Name != "a" || nodes[0].Epoch != 1 || len(nodes[0].Queues) != 2 || nodes[0].PID == 0 {
			t.Fatalf("the nodes are %+v", nodes)
		}
		if age := time.Since(nodes[0].SeenAt); age > 20*time.Second || !nodes[0].Alive(time.Now()) {
			t.Errorf("its last word is %v old", age)
		}
		if err := e.stopped(); err != nil {
			t.Fatal(err)
		}
		if nodes = nodesOf(t, e); len(nodes) != 1 || nodes[0].StoppedAt.IsZero() || nodes[0].Alive(time.Now()) {
			t.Errorf("after it stopped the nodes are %+v", nodes)
		}
	})
}

func TestAWorkerWithoutANameIsForgottenWhenItStops(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := running(t, belfry.WorkerSettings{})
		if nodes := nodesOf(t, e); len(nodes) != 1 || nodes[0].Named {
			t.Fatalf("the nodes are %+v", nodes)
		}
		if err := e.stopped(); err != nil {
			t.Fatal(err)
		}
		if nodes := nodesOf(t, e); len(nodes) != 0 {
			t.Errorf("the nodes are %+v", nodes)
		}
	})
}

func TestAWorkerThatFellSilentIsForgottenByOthers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newFaulty()
		silent := newEngine(t, s, belfry.WorkerSettings{}).start()
		s.fail("docs write", errBoom)
		if err := silent.stopped(); err != nil {
			t.Fatal(err)
		}
		e := newEngine(t, s.Store, belfry.WorkerSettings{Node: "b"}).start()
		pass(59 * time.Minute)
		if nodes := nodesOf(t, e); len(nodes) != 2 {
			t.Fatalf("the nodes are %+v", nodes)
		}
		pass(10 * time.Minute)
		if nodes := nodesOf(t, e); len(nodes) != 1 || nodes[0].Name != "b" {
			t.Errorf("the nodes are %+v", nodes)
		}
	})
}

func TestASecondWorkerUnderANameIsReported(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		var log bytes.Buffer
		first := newEngine(t, s, belfry.WorkerSettings{Node: "a", Logger: slog.New(slog.NewTextHandler(&log, nil))}).start()
		second := newEngine(t, s, belfry.WorkerSettings{Node: "a"}).start()
		pass(time.Minute)
		if err := first.stopped(); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(log.String(), "another worker runs under the same name") {
			t.Errorf("the log says %q", log.String())
		}
		if nodes := nodesOf(t, second); len(nodes) != 1 || nodes[0].Epoch != 2 || !nodes[0].Alive(time.Now()) {
			t.Errorf("the nodes are %+v", nodes)
		}
	})
}

func TestAStopWhileAWorkerStartsIsNoError(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		e := newEngine(t, memstore.New(), belfry.WorkerSettings{})
		if err := e.worker.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}
