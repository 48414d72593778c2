package sqlitestore

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/belfryhq/belfry/store"
	"github.com/belfryhq/belfry/store/internal/sqlstore"
)

func TestAReadNeitherDelaysWritesNorSeesThem(t *testing.T) {
	s := openTest(t, filepath.Join(t.TempDir(), "b.db"))
	messages := numbered(2)
	put(t, s, messages[0])
	err := s.readers.read(t.Context(), func(_ context.Context, c sqlstore.Conn) error {
		before := waiting(t, c)
		put(t, s, messages[1])
		if after := waiting(t, c); before != "1" || after != before {
			t.Errorf("the read counted %s messages, and after a write %s", before, after)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := count(t, s); got != 2 {
		t.Errorf("a later read counted %d", got)
	}
}

func waiting(t *testing.T, c sqlstore.Conn) string {
	t.Helper()
	row, err := c.(*conn).run("SELECT count(*) FROM messages")
	if err != nil {
		t.Fatal(err)
	}
	return row[0]
}

func TestAReadEndsWithItsContext(t *testing.T) {
	s := openTest(t, filepath.Join(t.TempDir(), "b.db"))
	ctx, cancel := context.WithCancel(t.Context())
	begun := make(chan struct{})
	go func() { <-begun; cancel() }()
	err := s.readers.read(ctx, func(_ context.Context, c sqlstore.Conn) error {
		close(begun)
		_, err := c.(*conn).run("WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n") // for ever
		return err
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the read gave %v", err)
	}
	if _, err := s.List(ctx, store.Query{}); !errors.Is(err, context.Canceled) {
		t.Errorf("List with a context that is over gave %v", err)
	}
	for range 2 * cap(s.readers.idle) { // every connection still works
		count(t, s)
	}
}
