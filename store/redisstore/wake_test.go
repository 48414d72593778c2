package redisstore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/belfryhq/belfry/internal/testserver"
	"github.com/belfryhq/belfry/store"
	"github.com/belfryhq/belfry/store/redisstore"
)

// listening runs Listen and returns what it hears and how it ends.
func listening(t *testing.T, ctx context.Context, s *redisstore.Store) (heard chan store.QueueHint, ended chan error) {
	t.Helper()
	heard, ended = make(chan store.QueueHint, 1000), make(chan error, 1)
	ready := make(chan struct{})
	go func() {
		ended <- s.Listen(ctx, func() { close(ready) }, func(hints []store.QueueHint) {
			for _, h := range hints {
				heard <- h
			}
		})
	}()
	select {
	case <-ready:
	case err := <-ended:
		t.Fatalf("Listen ends with %v", err)
	case <-t.Context().Done():
	}
	return heard, ended
}

// within returns what a channel gives.
func within[T any](t *testing.T, c chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(10 * time.Second):
		t.Fatal("nothing came in ten seconds")
	}
	panic("unreachable")
}

func TestWakeUpsReachEveryProcessAndNoOtherPrefix(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]string{"single": testserver.Redis(t), "cluster": testserver.RedisCluster(t)} {
		t.Run(name, func(t *testing.T) {
			here, there := openURL(t, url, redisstore.Settings{}), openURL(t, url, redisstore.Settings{})
			stranger := openURL(t, plain(url), redisstore.Settings{Prefix: prefix()})
			heard, _ := listening(t, t.Context(), there)
			apart, _ := listening(t, t.Context(), stranger)
			hints := make([]store.QueueHint, 5000) // more than one notice
			for i := range hints {
				hints[i] = store.QueueHint{Queue: "a queue", At: start.Add(time.Duration(i) * time.Millisecond)}
			}
			if err := here.Wake(t.Context(), hints); err != nil {
				t.Fatal(err)
			}
			for i := range hints {
				if h := within(t, heard); h.Queue != "a queue" || !h.At.Equal(hints[i].At) {
					t.Fatalf("hint %d is %+v", i, h)
				}
			}
			if len(apart) > 0 {
				t.Errorf("another prefix hears %+v", <-apart)
			}
		})
	}
}

func TestListenEndsWithItsContextTheStoreAndTheServer(t *testing.T) {
	t.Parallel()
	server := testserver.StartRedis(t)
	ctx, cancel := context.WithCancel(t.Context())
	_, ended := listening(t, ctx, openURL(t, server.URL, redisstore.Settings{}))
	cancel()
	if err := within(t, ended); !errors.Is(err, context.Canceled) {
		t.Errorf("its context ended: %v", err)
	}
	s := openURL(t, server.URL, redisstore.Settings{})
	_, ended = listening(t, t.Context(), s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := within(t, ended); !errors.Is(err, store.ErrClosed) {
		t.Errorf("the store was closed: %v", err)
	}
	_, ended = listening(t, t.Context(), openURL(t, server.URL, redisstore.Settings{}))
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := within(t, ended); err == nil {
		t.Error("the server was killed, and Listen ends without an error")
	}
}
