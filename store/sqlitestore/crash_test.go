package sqlitestore

import (
	"errors"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belfryhq/belfry/store"
)

// TestWhatWasAcknowledgedSurvivesAKill kills a process that puts and settles, again and again, and looks for everything
// that it was told is stored.
func TestWhatWasAcknowledgedSurvivesAKill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "b.db")
	state := map[string]string{} // the last that was acknowledged of each message
	for range 5 {
		for _, line := range child(t, "load", path).killed(t, 200+rand.IntN(2000)) {
			what, id, _ := strings.Cut(line, " ")
			if what != "put" || state[id] == "" { // a put may be told after its settlement
				state[id] = what
			}
		}
		checkAcknowledged(t, path, state)
	}
}

func checkAcknowledged(t *testing.T, path string, state map[string]string) {
	t.Helper()
	s, err := Open(t.Context(), path, Settings{}) // the lock went with the process
	if err != nil {
		t.Fatal(err)
	}
	lost := 0
	for id, what := range state {
		m, err := s.Get(t.Context(), store.Key{Queue: "q", ID: id})
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			t.Fatal(err)
		}
		// What was put last may have been settled without the process living to tell.
		if what == "kept" && m.State != store.Done || what == "removed" && err == nil {
			lost++
			t.Errorf("message %s was %s, but is %v (%v)", id, what, m.State, err)
		}
		if m.State == store.Leased {
			t.Errorf("message %s is still leased", id)
		}
	}
	checkPuts(t, s, state)
	if row := runIn(t, s, "PRAGMA integrity_check"); row[0] != "ok" {
		t.Errorf("the file is damaged: %v", row)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d messages were acknowledged, %d of them lost", len(state), lost)
}

// checkPuts fails when messages that were put, and not settled as far as anybody was told, are missing: of those the
// settlers may have removed as many as they had in hand.
func checkPuts(t *testing.T, s *Store, state map[string]string) {
	t.Helper()
	missing := 0
	for id, what := range state {
		if what != "put" {
			continue
		}
		if _, err := s.Get(t.Context(), store.Key{Queue: "q", ID: id}); err != nil {
			missing++
			delete(state, id) // told once
		}
	}
	const inHand = 2 * 3 // two settlers, three of five messages removed
	if missing > inHand {
		t.Errorf("%d messages that were put are missing", missing)
	}
}
