package lifecycle_test

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/belfryhq/belfry/internal/lifecycle"
	"github.com/belfryhq/belfry/store"
)

// stored returns a message that has failed once, in a state.
func stored(state store.State) store.Message {
	m := *leased(nil)
	m.State, m.Attempts, m.Claims, m.LastError = state, 1, 2, "HTTP 500"
	if state.Finished() {
		m.FinishedAt, m.PurgeAt = noon, noon.Add(time.Hour)
	}
	return m
}

func TestWhichStatesMayChange(t *testing.T) {
	later := noon.Add(time.Minute)
	changes := map[string]func(m store.Message) (store.Message, error){
		"cancel":     func(m store.Message) (store.Message, error) { return lifecycle.Cancel(m, later) },
		"reschedule": func(m store.Message) (store.Message, error) { return lifecycle.Reschedule(m, later, later) },
		"revive":     func(m store.Message) (store.Message, error) { return lifecycle.Revive(m, later, later) },
		"remove":     func(m store.Message) (store.Message, error) { return lifecycle.Remove(m, later) },
	}
	type states map[store.State]error
	finished, live := lifecycle.ErrFinished, lifecycle.ErrLive
	for name, refusals := range map[string]states{
		"cancel":     {store.Done: finished, store.Dead: finished, store.Canceled: lifecycle.ErrUnchanged},
		"reschedule": {store.Done: finished, store.Dead: finished, store.Canceled: finished},
		"revive":     {store.Scheduled: live, store.Leased: live},
		"remove":     {},
	} {
		for state := store.Scheduled; state <= store.Canceled; state++ {
			m := stored(state)
			got, err := changes[name](m)
			if want := refusals[state]; !errors.Is(err, want) || want == nil && err != nil {
				t.Errorf("%s of a %v message: %v, want %v", name, state, err, want)
			}
			if err != nil && !reflect.DeepEqual(got, m) {
				t.Errorf("a refused %s of a %v message changed it", name, state)
			}
		}
	}
	if _, err := lifecycle.Remove(store.Message{}, noon); err == nil {
		t.Error("a message without a state was removed")
	}
}

func TestCancelFinishesAndKeepsByRetention(t *testing.T) {
	for _, state := range []store.State{store.Scheduled, store.Leased} {
		want := stored(state)
		want.State, want.FinishedAt, want.PurgeAt = store.Canceled, noon, noon.Add(time.Hour+time.Millisecond)
		if got, err := lifecycle.Cancel(stored(state), noon.Add(time.Microsecond)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, %v", got, err)
		}
	}
}

func TestRescheduleMovesTheInstantAndKeepsTheCounts(t *testing.T) {
	for _, c := range []struct {
		rule     string
		at, want time.Time
	}{
		{"an instant is rounded up", noon.Add(time.Hour + 1), noon.Add(time.Hour + time.Millisecond)},
		{"an instant in the past is due at once", noon.Add(-time.Hour), noon.Add(-time.Hour)},
		{"no instant means now", time.Time{}, noon.Add(time.Millisecond)},
		{"an instant beyond the end of time is the end of time", store.Never.Add(time.Hour), store.Never},
	} {
		m := stored(store.Leased)
		m.DueAt = noon.Add(10 * time.Minute) // waits for its retry
		want := m
		want.State, want.FireAt, want.DueAt = store.Scheduled, c.want, c.want
		if got, err := lifecycle.Reschedule(m, c.at, noon.Add(1)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v", c.rule, got, err)
		}
	}
}

func TestRescheduleToTheExpiryIsRefused(t *testing.T) {
	m := stored(store.Scheduled)
	m.ExpiresAt = noon.Add(time.Hour)
	for at, want := range map[time.Time]error{
		noon.Add(time.Hour - time.Millisecond): nil,
		noon.Add(time.Hour - 1):                lifecycle.ErrExpires, // rounded up it is the expiry
		noon.Add(time.Hour):                    lifecycle.ErrExpires,
	} {
		if _, err := lifecycle.Reschedule(m, at, noon); !errors.Is(err, want) {
			t.Errorf("at %v: %v", at, err)
		}
	}
	if _, err := lifecycle.Reschedule(m, noon, noon.Add(time.Hour)); !errors.Is(err, lifecycle.ErrExpires) {
		t.Errorf("an expired message: %v", err)
	}
}

func TestReviveBeginsANewLife(t *testing.T) {
	at := noon.Add(time.Hour)
	for _, c := range []struct {
		rule            string
		expires, remain time.Time
	}{
		{"without an expiry", time.Time{}, time.Time{}},
		{"an expiry that would end it at once is dropped", at, time.Time{}},
		{"a later expiry stays", at.Add(time.Millisecond), at.Add(time.Millisecond)},
	} {
		m := stored(store.Dead)
		m.ExpiresAt = c.expires
		want := m
		want.State, want.FireAt, want.DueAt, want.ExpiresAt = store.Scheduled, at, at, c.remain
		want.Attempts, want.Claims, want.FinishedAt, want.PurgeAt = 0, 0, time.Time{}, time.Time{}
		if got, err := lifecycle.Revive(m, at, noon); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v", c.rule, got, err)
		}
	}
	if m, err := lifecycle.Revive(stored(store.Done), time.Time{}, noon); err != nil || !m.DueAt.Equal(noon) {
		t.Errorf("without an instant: due at %v, %v", m.DueAt, err)
	}
}

func TestRemoveIsPurgedByTheSameWriteAndFreesItsDedupKey(t *testing.T) {
	for state := store.Scheduled; state <= store.Canceled; state++ {
		m := stored(state)
		m.DedupUntil, m.Retention = noon.Add(time.Hour), store.Retention{Done: store.Forever, Dead: store.Forever}
		got, err := lifecycle.Remove(m, noon.Add(1))
		if err != nil || !got.State.Finished() || got.FinishedAt.IsZero() || !got.PurgeAt.Equal(noon) || !got.DedupUntil.IsZero() {
			t.Errorf("%v: got %+v, %v", state, got, err)
		}
		if state.Finished() && got.State != state {
			t.Errorf("%v became %v", state, got.State)
		}
	}
}

func TestFinish(t *testing.T) {
	hour := store.Retention{Done: time.Hour, Dead: 2 * time.Hour}
	for _, c := range []struct {
		rule      string
		retention store.Retention
		dedup     time.Duration // from noon; zero: none
		outcome   store.Outcome
		want      time.Time
	}{
		{"done is kept by its retention", hour, 0, store.OutcomeDone, noon.Add(time.Hour + time.Millisecond)},
		{"canceled counts as done", hour, 0, store.OutcomeCancel, noon.Add(time.Hour + time.Millisecond)},
		{"dead has a retention of its own", hour, 0, store.OutcomeBury, noon.Add(2*time.Hour + time.Millisecond)},
		{"a retry keeps nothing", hour, 0, store.OutcomeRetry, time.Time{}},
		{"a release keeps nothing", hour, 0, store.OutcomeRelease, time.Time{}},
		{"no retention means removed at once", store.Retention{}, 0, store.OutcomeDone, noon},
		{"for ever", store.Retention{Done: store.Forever}, time.Hour, store.OutcomeDone, store.Never},
		{"a dedup key keeps it longer", hour, 3 * time.Hour, store.OutcomeDone, noon.Add(3 * time.Hour)},
		{"a dedup key keeps what would be removed", store.Retention{}, time.Hour, store.OutcomeDone, noon.Add(time.Hour)},
		{"a dedup key keeps nothing shorter", hour, time.Minute, store.OutcomeDone, noon.Add(time.Hour + time.Millisecond)},
		{"a dedup key of the past keeps nothing", store.Retention{}, -time.Hour, store.OutcomeBury, noon},
	} {
		t.Run(c.rule, func(t *testing.T) {
			m := store.Message{Retention: c.retention}
			if c.dedup != 0 {
				m.DedupUntil = noon.Add(c.dedup)
			}
			if got := lifecycle.Finish(&m, c.outcome, noon.Add(1)); !got.Equal(c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}
