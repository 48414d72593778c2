package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/belfryhq/belfry/store"
	"github.com/belfryhq/belfry/store/internal/sqlstore"
)

// hold keeps the writer busy with one operation until the function it returns is called.
func hold(t *testing.T, s *Store) (release func()) {
	t.Helper()
	begun, end := make(chan struct{}), make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		err := s.writer.write(context.Background(), sqlstore.Load{}, func(context.Context, sqlstore.Conn) error {
			close(begun)
			<-end
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
	<-begun
	return func() { close(end); done.Wait() }
}

// queued waits until so many operations wait for the writer.
func (w *writer) waitQueued(n int) {
	for {
		w.mu.Lock()
		have := len(w.pending)
		w.mu.Unlock()
		if have >= n {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// commits counts the transactions of a store from now on. The writer must be held meanwhile.
func commits(s *Store) *int {
	n, before := 0, s.writer.committed
	s.writer.committed = func(c *conn) { n++; before(c) }
	return &n
}

func TestOperationsThatQueueUpAreCommittedTogether(t *testing.T) {
	s := openTest(t, filepath.Join(t.TempDir(), "b.db"))
	release := hold(t, s)
	n := commits(s)
	var callers sync.WaitGroup
	for _, m := range numbered(40) {
		callers.Go(func() { put(t, s, m) })
	}
	callers.Go(func() {
		if _, err := s.Docs().Put(t.Context(), store.Doc{Name: "d"}); err != nil {
			t.Error(err)
		}
	})
	callers.Go(func() {
		if _, err := s.Purge(t.Context(), start, 10); err != nil {
			t.Error(err)
		}
	})
	s.writer.waitQueued(42)
	release()
	callers.Wait()
	if got := count(t, s); got != 40 {
		t.Errorf("%d messages are stored, want 40", got)
	}
	if err := s.Close(); err != nil { // after which the writer counts no more
		t.Fatal(err)
	}
	if *n != 2 { // that of the operation that was held, and one for all the others
		t.Errorf("42 operations that waited took %d transactions, want 1", *n-1)
	}
}

func TestALoneOperationIsCommittedAtOnce(t *testing.T) {
	s := openTest(t, filepath.Join(t.TempDir(), "b.db"))
	for i, m := range numbered(5) {
		put(t, s, m)
		if got := count(t, s); got != int64(i+1) {
			t.Fatalf("after %d puts %d messages are stored", i+1, got)
		}
	}
}

func TestABatchIsBounded(t *testing.T) {
	w := newWriter(nil)
	var batches []int
	for _, load := range []sqlstore.Load{{Rows: 5 * maxRows}, {Rows: maxRows}, {Rows: 1}, {Bytes: maxBytes}, {Bytes: maxBytes}, {Rows: 1}, {}} {
		w.enqueue(&operation{load: load})
	}
	for {
		batch, _ := w.take()
		if len(batch) == 0 {
			break
		}
		batches = append(batches, len(batch))
	}
	if got := fmt.Sprint(batches); got != "[1 1 2 3]" {
		t.Errorf("the operations were taken in batches of %s", got)
	}
}

func TestAnOperationThatFailsIsUndoneAlone(t *testing.T) {
	s := openTest(t, filepath.Join(t.TempDir(), "b.db"))
	release := hold(t, s)
	failure := errors.New("it failed")
	var callers sync.WaitGroup
	for i, m := range numbered(9) {
		callers.Go(func() {
			if i != 4 {
				put(t, s, m)
				return
			}
			err := s.writer.write(t.Context(), sqlstore.Load{}, func(context.Context, sqlstore.Conn) error {
				if _, err := s.writer.conn.run("INSERT INTO docs (name, version) VALUES ('half', 1)"); err != nil {
					return err
				}
				return failure
			})
			if !errors.Is(err, failure) {
				t.Errorf("the operation that failed gave %v", err)
			}
		})
	}
	s.writer.waitQueued(9)
	release()
	callers.Wait()
	if got := count(t, s); got != 8 {
		t.Errorf("%d of the 8 other operations had an effect", got)
	}
	if _, err := s.Docs().Get(t.Context(), "half"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("what the operation wrote before it failed is there: %v", err)
	}
}

func TestACallerWhoseContextEndsLeavesTheQueueWithNothingDone(t *testing.T) {
	s := openTest(t, filepath.Join(t.TempDir(), "b.db"))
	release := hold(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error)
	go func() {
		_, err := s.Put(ctx, start, numbered(1), 0)
		result <- err
	}()
	s.writer.waitQueued(1)
	cancel()
	if err := <-result; !errors.Is(err, context.Canceled) { // while the writer is still busy
		t.Errorf("Put gave %v", err)
	}
	release()
	if got := count(t, s); got != 0 {
		t.Errorf("the message is stored although its caller had left")
	}
}

func TestAnOperationThatIsUnderWayIsAnsweredWithItsOutcome(t *testing.T) {
	s := openTest(t, filepath.Join(t.TempDir(), "b.db"))
	ctx, cancel := context.WithCancel(t.Context())
	err := s.writer.write(ctx, sqlstore.Load{}, func(context.Context, sqlstore.Conn) error {
		cancel()
		_, err := s.writer.conn.run("INSERT INTO docs (name, version) VALUES ('whole', 1)")
		return err
	})
	if err != nil {
		t.Errorf("an operation that was committed gave %v", err)
	}
	if _, err := s.Docs().Get(t.Context(), "whole"); err != nil {
		t.Error(err)
	}
}

func TestCloseFinishesWhatHasQueuedUp(t *testing.T) {
	path := filepath.Join(t.TempDir(), "b.db")
	s := openTest(t, path)
	release := hold(t, s)
	var callers sync.WaitGroup
	for _, m := range numbered(10) {
		callers.Go(func() { put(t, s, m) })
	}
	s.writer.waitQueued(10)
	callers.Go(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	release()
	callers.Wait()
	if err := s.Close(); err != nil {
		t.Errorf("the second Close gave %v", err)
	}
	again := openTest(t, path)
	if got := count(t, again); got != 10 {
		t.Errorf("%d of 10 acknowledged messages are stored", got)
	}
}

func TestAClosedStoreSaysSo(t *testing.T) {
	s := openTest(t, filepath.Join(t.TempDir(), "b.db"))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	for name, call := range map[string]func() error{
		"Put":      func() error { _, err := s.Put(ctx, start, numbered(1), 0); return err },
		"Claim":    func() error { _, err := s.Claim(ctx, store.Claim{Now: start}); return err },
		"Settle":   func() error { _, err := s.Settle(ctx, start, nil); return err },
		"Get":      func() error { _, err := s.Get(ctx, store.Key{}); return err },
		"List":     func() error { _, err := s.List(ctx, store.Query{}); return err },
		"Ping":     func() error { return s.Ping(ctx) },
		"Inspect":  func() error { _, err := s.Inspect(ctx); return err },
		"Docs.Put": func() error { _, err := s.Docs().Put(ctx, store.Doc{Name: "d"}); return err },
		"Wake":     func() error { return s.Wake(ctx, nil) },
		"Listen":   func() error { return s.Listen(ctx, nil, nil) },
	} {
		if err := call(); !errors.Is(err, store.ErrClosed) {
			t.Errorf("%s gave %v", name, err)
		}
	}
}
