package timers

import (
	"encoding/json"

	"github.com/belfryhq/belfry"
)

// summary is a timer as create, update and list show it.
type summary struct {
	ID           string   `json:"id"`
	CreatedAt    instant  `json:"created_at"`
	UpdatedAt    *instant `json:"updated_at,omitempty"`
	ExecuteAt    instant  `json:"execute_at"`
	CallbackType string   `json:"callback_type"`
	Status       string   `json:"status"`
	ExecutedAt   instant  `json:"executed_at"`
}

// detail is a timer as get shows it.
type detail struct {
	ID             string          `json:"id"`
	CreatedAt      instant         `json:"created_at"`
	UpdatedAt      instant         `json:"updated_at"`
	ExecuteAt      instant         `json:"execute_at"`
	CallbackType   string          `json:"callback_type"`
	CallbackConfig callback        `json:"callback_config"`
	Status         string          `json:"status"`
	LastError      *string         `json:"last_error"`
	ExecutedAt     instant         `json:"executed_at"`
	Metadata       json.RawMessage `json:"metadata"`
}

// statuses are the states of messages by the names timers have for them.
var statuses = map[belfry.State]string{
	belfry.Scheduled: "pending",
	belfry.Leased:    "executing",
	belfry.Done:      "completed",
	belfry.Dead:      "failed",
	belfry.Canceled:  "canceled",
}

// summarize shows a timer in short.
func summarize(m *belfry.Message) summary {
	return summary{
		ID: m.ID, CreatedAt: instant(m.CreatedAt), ExecuteAt: instant(m.FireAt), CallbackType: m.Target,
		Status: statuses[m.State], ExecutedAt: executedAt(m),
	}
}

// executedAt is when the callback ended, either way.
func executedAt(m *belfry.Message) instant {
	if m.State == belfry.Done || m.State == belfry.Dead {
		return instant(m.FinishedAt)
	}
	return instant{}
}

// describe shows a timer in full.
func describe(m *belfry.Message) (detail, error) {
	k, err := keptOf(m)
	if err != nil {
		return detail{}, err
	}
	d := detail{
		ID: m.ID, CreatedAt: instant(m.CreatedAt), UpdatedAt: instant(m.UpdatedAt), ExecuteAt: instant(m.FireAt),
		CallbackType: m.Target, CallbackConfig: k.Callback, Status: statuses[m.State], ExecutedAt: executedAt(m), Metadata: k.Metadata,
	}
	d.CallbackConfig.Payload = m.Payload
	if k.Null {
		d.CallbackConfig.Payload = json.RawMessage("null")
	}
	if m.LastError != "" {
		d.LastError = &m.LastError
	}
	return d, nil
}

// keptOf reads what the API keeps with a timer.
func keptOf(m *belfry.Message) (kept, error) {
	var k kept
	if m.Metadata == nil {
		return k, nil
	}
	err := json.Unmarshal(m.Metadata, &k)
	return k, err
}
