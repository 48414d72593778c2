package sqlitestore

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/belfryhq/belfry/store"
	"github.com/belfryhq/belfry/store/internal/sqlstore"
)

// openTest opens the file at the path and closes it with the test.
func openTest(t *testing.T, path string) *Store {
	t.Helper()
	s, err := Open(t.Context(), path, Settings{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// runIn runs a statement in a transaction of the store's writer and returns its first row.
func runIn(t *testing.T, s *Store, statement string) []string {
	t.Helper()
	var row []string
	err := s.writer.write(t.Context(), sqlstore.Load{}, func(context.Context, sqlstore.Conn) error {
		var err error
		row, err = s.writer.conn.run(statement)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return row
}

// start is the now of tests.
var start = time.Date(2031, 3, 4, 5, 6, 7, 0, time.UTC)

// numbered returns messages due at start with ids from m0 on.
func numbered(n int) []store.Message {
	messages := make([]store.Message, n)
	for i := range messages {
		messages[i] = store.Message{Queue: "q", ID: fmt.Sprintf("m%d", i), FireAt: start, Payload: []byte(fmt.Sprint(i))}
	}
	return messages
}

// put stores messages, all of which must be accepted.
func put(t *testing.T, s *Store, messages ...store.Message) {
	t.Helper()
	results, err := s.Put(t.Context(), start, messages, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range results {
		if r.Err != nil {
			t.Fatalf("put %q: %v", messages[i].ID, r.Err)
		}
	}
}

// claim leases at most n messages until start + 30 s.
func claim(t *testing.T, s *Store, n int) []store.Message {
	t.Helper()
	got, err := s.Claim(t.Context(), store.Claim{
		Now: start, Until: start.Add(30 * time.Second), Owner: "node", Epoch: 1, Queues: []store.QueueClaim{{Queue: "q", Limit: n}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return got.Messages
}

// count returns how many messages the queue has in the states.
func count(t *testing.T, s *Store, states ...store.State) int64 {
	t.Helper()
	n, err := s.Count(t.Context(), store.Query{Queue: "q", States: states})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
