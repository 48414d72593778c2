package pgstore_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/belfryhq/belfry/internal/testserver"
	"github.com/belfryhq/belfry/store"
	"github.com/belfryhq/belfry/store/pgstore"
)

// TestWhatAProcessWritesInThePastItClaimsAtOnce checks every way in which a message gets an earlier instant, on a store that
// remembers where claims begin.
func TestWhatAProcessWritesInThePastItClaimsAtOnce(t *testing.T) {
	past := now.Add(-time.Hour)
	settle := func(t *testing.T, s *pgstore.Store, queue string, settlement store.Settlement) {
		t.Helper()
		settlement.Token = take(t, s, queue, 1)[0].Token()
		remember(t, s, queue)
		errs, err := s.Settle(t.Context(), now, []store.Settlement{settlement})
		must(t, errors.Join(append(errs, err)...))
	}
	ways := map[string]func(t *testing.T, s *pgstore.Store, m store.Message){
		"put": func(t *testing.T, s *pgstore.Store, m store.Message) {
			remember(t, s, m.Queue)
			m.FireAt, m.Priority = past, 5
			put(t, s, m)
		},
		"release": func(t *testing.T, s *pgstore.Store, m store.Message) {
			put(t, s, m)
			settle(t, s, m.Queue, store.Settlement{Outcome: store.OutcomeRelease, At: past})
		},
		"settle with content": func(t *testing.T, s *pgstore.Store, m store.Message) {
			put(t, s, m)
			m.Priority = 9
			settle(t, s, m.Queue, store.Settlement{Outcome: store.OutcomeRetry, At: past, Content: &m})
		},
		"follow-up": func(t *testing.T, s *pgstore.Store, m store.Message) {
			first := m
			first.ID = "first"
			put(t, s, first)
			m.Parent, m.FireAt = "first", past
			settle(t, s, m.Queue, store.Settlement{Outcome: store.OutcomeDone, PurgeAt: store.Never, FollowUps: []store.Message{m}})
		},
		"replace": func(t *testing.T, s *pgstore.Store, m store.Message) {
			m.FireAt = now.Add(time.Hour)
			m = put(t, s, m)
			remember(t, s, m.Queue)
			m.FireAt, m.DueAt = past, past
			errs, err := s.Replace(t.Context(), now, []store.Change{{Message: m}})
			must(t, errors.Join(append(errs, err)...))
		},
		"forfeit": func(t *testing.T, s *pgstore.Store, m store.Message) {
			m.FireAt = past
			put(t, s, m)
			take(t, s, m.Queue, 1)
			remember(t, s, m.Queue)
			_, err := s.Forfeit(t.Context(), now, "node", 2)
			must(t, err)
		},
		"gate": func(t *testing.T, s *pgstore.Store, m store.Message) {
			member := m
			member.ID = "member"
			put(t, s, member)
			m.FireAt, m.Gate = past, &store.Gate{IDs: []string{"member"}}
			put(t, s, m)
			settle(t, s, m.Queue, store.Settlement{Outcome: store.OutcomeDone, PurgeAt: store.Never})
		},
	}
	for name, write := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, testserver.Postgres(t), pgstore.Settings{})
			s.ClaimsAreSlow()
			write(t, s, store.Message{Queue: "q", ID: "m", FireAt: now})
			if got := claim(t, s, "q", 10); !slices.Equal(got, []string{"m"}) {
				t.Errorf("claimed %v", got)
			}
		})
	}
}

// remember makes a store that counts every claim as slow remember where claims of a queue begin. It takes nothing.
func remember(t testing.TB, s *pgstore.Store, queue string) {
	t.Helper()
	for range 3 {
		take(t, s, queue, 0)
	}
}
