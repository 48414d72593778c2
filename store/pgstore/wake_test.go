package pgstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/belfryhq/belfry/internal/testserver"
	"github.com/belfryhq/belfry/store"
	"github.com/belfryhq/belfry/store/pgstore"
)

// listen returns what a store hears from now on.
func listen(t testing.TB, s *pgstore.Store) <-chan store.QueueHint {
	t.Helper()
	heard, ready, ended := make(chan store.QueueHint, 10_000), make(chan struct{}), make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		ended <- s.Listen(ctx, func() { close(ready) }, func(hints []store.QueueHint) {
			for _, h := range hints {
				heard <- h
			}
		})
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	select {
	case <-ready:
	case err := <-ended:
		t.Fatal(err)
	}
	return heard
}

func TestAWakeUpReachesEveryProcess(t *testing.T) {
	url := testserver.Postgres(t)
	one, other := open(t, url, pgstore.Settings{}), open(t, url, pgstore.Settings{})
	heard := []<-chan store.QueueHint{listen(t, one), listen(t, other)}
	must(t, one.Wake(t.Context(), []store.QueueHint{{Queue: "q", At: now.Add(time.Second)}, {Queue: "q", At: now}}))
	for _, h := range heard {
		if got := <-h; got.Queue != "q" || !got.At.Equal(now) {
			t.Errorf("heard %v", got)
		}
	}
}

func TestMoreHintsThanOneNotificationHoldsAllArrive(t *testing.T) {
	s := open(t, testserver.Postgres(t), pgstore.Settings{})
	heard := listen(t, s)
	const many = 500
	var hints []store.QueueHint
	for i := range many {
		hints = append(hints, store.QueueHint{Queue: fmt.Sprintf("\"\\\x01<%03d%s", i, strings.Repeat("ü", 120)), At: now})
	}
	must(t, s.Wake(t.Context(), hints))
	seen := map[string]bool{}
	for len(seen) < many {
		seen[(<-heard).Queue] = true
	}
	for _, h := range hints {
		if !seen[h.Queue] {
			t.Errorf("nothing was heard of %q", h.Queue)
		}
	}
}

func TestStoresWithOtherTablesHearNothing(t *testing.T) {
	url := testserver.Postgres(t)
	one, other := open(t, url, pgstore.Settings{}), open(t, url, pgstore.Settings{Schema: "other"})
	heard := listen(t, other)
	must(t, one.Wake(t.Context(), []store.QueueHint{{Queue: "one", At: now}}))
	must(t, other.Wake(t.Context(), []store.QueueHint{{Queue: "other", At: now}}))
	if h := <-heard; h.Queue != "other" {
		t.Errorf("heard of %q of another store", h.Queue)
	}
}

func TestAListenerThatIsCutOffSaysSo(t *testing.T) {
	url := testserver.Postgres(t)
	s := open(t, url, pgstore.Settings{})
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- s.Listen(t.Context(), func() { close(ready) }, func([]store.QueueHint) {}) }()
	<-ready
	c, err := pgx.Connect(t.Context(), url)
	must(t, err)
	defer c.Close(t.Context())
	var cut int
	must(t, c.QueryRow(t.Context(), `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
		WHERE application_name = 'belfry listener' AND datname = current_database()`).Scan(&cut))
	if cut != 1 {
		t.Fatalf("%d connections listen", cut)
	}
	if err := <-ended; err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("Listen ended with %v", err)
	}
	listen(t, s) // again
}

func TestCloseEndsListening(t *testing.T) {
	s := open(t, testserver.Postgres(t), pgstore.Settings{})
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- s.Listen(t.Context(), func() { close(ready) }, func([]store.QueueHint) {}) }()
	<-ready
	must(t, s.Close())
	if err := <-ended; !errors.Is(err, store.ErrClosed) {
		t.Errorf("Listen ended with %v", err)
	}
}
