package timers

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/belfryhq/belfry"
	"github.com/belfryhq/belfry/store"
)

// Foreign is a timer as another platform keeps it. Instants that are not known are zero.
type Foreign struct {
	ID             string
	CreatedAt      time.Time
	ExecuteAt      time.Time
	CallbackType   string          // http or nats
	CallbackConfig json.RawMessage // the callback object
	Status         string          // as the API names it; executing is taken for pending
	LastError      string
	ExecutedAt     time.Time
	UpdatedAt      time.Time
	Metadata       json.RawMessage
}

// Pending reports whether the timer has yet to fire.
func (f *Foreign) Pending() bool { return f.Status == "pending" || f.Status == "executing" }

// Import turns foreign timers into messages.
type Import struct {
	// Retention is how long finished timers are kept; zero: for ever.
	Retention time.Duration
	// Callbacks check what pending timers do, as in Settings. Unlike there, a type that is missing is accepted.
	Callbacks map[string]Checker
}

// Message returns the message that the timer becomes, to be put into a store as it is. The error says why there is none.
func (i Import) Message(f *Foreign) (belfry.Message, error) {
	id, err := uuid.Parse(f.ID)
	if err != nil {
		return belfry.Message{}, fmt.Errorf("id %.64q is not a UUID", f.ID)
	}
	m := belfry.Message{
		Queue: Queue, ID: id.String(), Kind: "timer",
		FireAt: store.Ceil(f.ExecuteAt), CreatedAt: store.Floor(f.CreatedAt), LastError: f.LastError,
		Retry: belfry.RetryPolicy{MaxAttempts: 1},
	}
	if err := i.setState(&m, f); err != nil {
		return m, err
	}
	var c callback
	if err := json.Unmarshal(f.CallbackConfig, &c); err != nil {
		return m, fmt.Errorf("callback_config is not a callback: %w", err)
	}
	if c.Type == "" {
		c.Type = f.CallbackType
	}
	k := kept{Metadata: f.Metadata}
	if string(k.Metadata) == "null" {
		k.Metadata = nil
	}
	if err := i.api(m.State).setCallback(&m, &k, &c); err != nil {
		return m, err
	}
	m.Metadata, err = encode(k)
	return m, err
}

// api returns what reads callbacks: those of finished timers are history and need not be deliverable.
func (i Import) api(state belfry.State) *api {
	checkers := map[string]Checker{"http": nil, "nats": nil}
	if !state.Finished() {
		for name, checker := range i.Callbacks {
			checkers[name] = checker
		}
	}
	return &api{s: Settings{Callbacks: checkers}}
}

// setState gives the message the timer's state.
func (i Import) setState(m *belfry.Message, f *Foreign) error {
	retention := i.Retention
	if retention == 0 {
		retention = belfry.Forever
	}
	m.Retention = belfry.Retention{Done: retention, Dead: retention}
	ended := f.ExecutedAt
	switch f.Status {
	case "pending", "executing":
		m.State, m.LastError = belfry.Scheduled, ""
		return nil
	case "completed":
		m.State = belfry.Done
	case "failed":
		m.State = belfry.Dead
	case "canceled":
		m.State, ended = belfry.Canceled, f.UpdatedAt
	default:
		return fmt.Errorf("status %.64q is none of pending, executing, completed, failed, canceled", f.Status)
	}
	if ended.IsZero() {
		ended = f.ExecuteAt
	}
	m.FinishedAt = store.Floor(ended)
	m.PurgeAt = purgeAt(m.FinishedAt, retention)
	if m.State != belfry.Canceled && !f.ExecutedAt.IsZero() {
		m.Attempts, m.Claims = 1, 1
		m.History = []belfry.Attempt{{Number: 1, StartedAt: m.FinishedAt, Error: f.LastError}}
	}
	return nil
}

// Fail makes a pending timer one that failed without having been tried.
func (i Import) Fail(m *belfry.Message, why string, now time.Time) {
	m.State, m.LastError = belfry.Dead, why
	m.FinishedAt = store.Floor(now)
	m.PurgeAt = purgeAt(m.FinishedAt, m.Retention.Dead)
}

// purgeAt is until when a timer is kept that ended at an instant.
func purgeAt(ended time.Time, retention time.Duration) time.Time {
	if retention == belfry.Forever {
		return store.Never
	}
	return ended.Add(retention)
}
