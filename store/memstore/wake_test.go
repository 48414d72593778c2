package memstore_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/belfryhq/belfry/store"
	"github.com/belfryhq/belfry/store/memstore"
)

// listen starts a listener and returns once it hears; the channel yields what Listen returned.
func listen(ctx context.Context, s *memstore.Store, heard func([]store.QueueHint)) <-chan error {
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- s.Listen(ctx, func() { close(ready) }, heard) }()
	<-ready
	return done
}

func TestAWakeUpReachesEveryListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		ctx, cancel := context.WithCancel(t.Context())
		heard := make([][]store.QueueHint, 3)
		var done []<-chan error
		for i := range heard {
			done = append(done, listen(ctx, s, func(hints []store.QueueHint) {
				heard[i] = append(heard[i], hints...)
				hints[0].Queue = "changed by a listener"
			}))
		}
		sent := []store.QueueHint{{Queue: "q", At: epoch}}
		if err := s.Wake(ctx, sent); err != nil {
			t.Fatal(err)
		}
		for i, hints := range heard {
			if len(hints) != 1 || !hints[0].At.Equal(epoch) {
				t.Errorf("listener %d heard %v, want %v", i, hints, sent)
			}
		}
		if sent[0].Queue != "q" {
			t.Error("a listener changed the sender's hints")
		}
		cancel()
		for i := range done {
			if err := <-done[i]; !errors.Is(err, context.Canceled) {
				t.Errorf("listener %d ended with %v, want context.Canceled", i, err)
			}
		}
		if err := s.Wake(t.Context(), sent); err != nil {
			t.Fatal(err)
		}
		if len(heard[0]) != 1 {
			t.Error("a listener was called after Listen had returned")
		}
	})
}

func TestAListenerIsCalledOneAtATime(t *testing.T) {
	s := memstore.New()
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0 // the race detector watches it
	done := listen(ctx, s, func([]store.QueueHint) { calls++ })
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 100 {
				if err := s.Wake(ctx, []store.QueueHint{{Queue: "q"}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	cancel()
	<-done
	if calls != 800 {
		t.Errorf("heard %d of 800 wake-ups", calls)
	}
}

func TestCloseEndsEveryListen(t *testing.T) {
	s := memstore.New()
	done := listen(t.Context(), s, func([]store.QueueHint) {})
	for range 2 {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := <-done; !errors.Is(err, store.ErrClosed) {
		t.Errorf("Listen ended with %v, want ErrClosed", err)
	}
	if err := s.Wake(t.Context(), nil); !errors.Is(err, store.ErrClosed) {
		t.Errorf("Wake of a closed store gave %v, want ErrClosed", err)
	}
	if err := s.Listen(t.Context(), nil, nil); !errors.Is(err, store.ErrClosed) {
		t.Errorf("Listen on a closed store gave %v, want ErrClosed", err)
	}
}
