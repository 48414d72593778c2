package sqlitestore

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/belfryhq/belfry/store"
)

func TestOpenGivesBackWhatWasLeased(t *testing.T) {
	path := filepath.Join(t.TempDir(), "b.db")
	s := openTest(t, path)
	m := numbered(1)[0]
	m.DueAt = start.Add(-time.Hour)
	put(t, s, m)
	held := claim(t, s, 1)[0]
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openTest(t, path)
	got, err := s.Get(t.Context(), held.Key())
	if err != nil {
		t.Fatal(err)
	}
	if got.State != store.Scheduled || !got.VisibleAt.Equal(m.DueAt) || got.Claims != 1 || got.Owner != "" || got.Version <= held.Version {
		t.Errorf("the message is %+v", got)
	}
	errs, err := s.Settle(t.Context(), start, []store.Settlement{{Token: held.Token(), Outcome: store.OutcomeDone}})
	if err != nil || !errors.Is(errs[0], store.ErrLeaseLost) {
		t.Errorf("Settle with the old token gave %v, %v", errs, err)
	}
}

func TestNoVersionIsRepeatedAfterTheClockWentBackOverARestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "b.db")
	m := numbered(1)[0]
	var last int64
	for i := range 4 {
		s := openTest(t, path)
		now := start.Add(-time.Duration(i) * time.Hour)
		m.FireAt = now
		results, err := s.Put(t.Context(), now, []store.Message{m}, 0)
		if err != nil || results[0].Err != nil {
			t.Fatal(results, err)
		}
		if results[0].Version <= last {
			t.Errorf("life %d of the id begins at version %d, but the one before had %d", i, results[0].Version, last)
		}
		claimed, err := s.Claim(t.Context(), store.Claim{Now: now, Until: now.Add(time.Minute), Keys: []store.Key{m.Key()}})
		if err != nil {
			t.Fatal(err)
		}
		last = claimed.Messages[0].Version
		if _, err := s.Settle(t.Context(), now, []store.Settlement{{Token: claimed.Messages[0].Token(), Outcome: store.OutcomeDone}}); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestInspectTellsWhatACommitIsWorth(t *testing.T) {
	for mode, want := range map[Synchronous]store.Durability{Full: store.Strict, Normal: store.Weak} {
		s, err := Open(t.Context(), filepath.Join(t.TempDir(), "b.db"), Settings{Synchronous: mode})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		info, err := s.Inspect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if info.Durability != want || info.Name != "sqlite" || info.Schema != 1 || info.Version == "" || info.Details["journal_mode"] != "wal" {
			t.Errorf("synchronous = %s: %+v", mode, info)
		}
	}
}
