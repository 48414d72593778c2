package timers_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/belfryhq/belfry"
	"github.com/belfryhq/belfry/api/timers"
	"github.com/belfryhq/belfry/store"
	"github.com/belfryhq/belfry/store/memstore"
	"github.com/belfryhq/belfry/target/httptarget"
)

var (
	created  = time.Date(2026, 3, 1, 8, 0, 0, 123456000, time.UTC)
	fires    = time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)
	executed = time.Date(2026, 3, 2, 8, 0, 1, 0, time.UTC)
)

func foreign(status string) timers.Foreign {
	return timers.Foreign{
		ID: "6f1b2f6e-6c2a-4b0e-9a6e-0b8f7f3c2d11", CreatedAt: created, UpdatedAt: executed, ExecuteAt: fires, Status: status,
		CallbackType: "http", CallbackConfig: json.RawMessage(`{"url":"http://example.com/hook","headers":{"X-A":"b"},"payload":{"a":1}}`),
		Metadata: json.RawMessage(`{"client_ref":"order-1"}`),
	}
}

func TestAnImportedTimerIsStoredInItsState(t *testing.T) {
	rules := timers.Import{Callbacks: map[string]timers.Checker{"http": &httptarget.Target{}}}
	for status, want := range map[string]store.State{
		"pending": store.Scheduled, "executing": store.Scheduled, "completed": store.Done, "failed": store.Dead, "canceled": store.Canceled,
	} {
		f := foreign(status)
		if status == "completed" || status == "failed" {
			f.ExecutedAt = executed
		}
		if status == "failed" {
			f.LastError = "HTTP 500"
		}
		m, err := rules.Message(&f)
		if err != nil {
			t.Fatalf("%s: %v", status, err)
		}
		s := memstore.New()
		results, err := s.Put(t.Context(), created.Add(100*time.Hour), []store.Message{m}, 0)
		if err != nil || results[0].Err != nil {
			t.Fatalf("%s: Put: %v, %v", status, results, err)
		}
		got, err := s.Get(t.Context(), store.Key{Queue: timers.Queue, ID: f.ID})
		if err != nil {
			t.Fatal(err)
		}
		if got.State != want || !got.FireAt.Equal(fires) || got.LastError != f.LastError || got.Address != "http://example.com/hook" {
			t.Errorf("%s became %+v", status, got)
		}
		if !got.CreatedAt.Equal(created.Truncate(time.Millisecond)) {
			t.Errorf("%s: created at %v", status, got.CreatedAt)
		}
		if !f.ExecutedAt.IsZero() && (got.Attempts != 1 || len(got.History) != 1 || !got.FinishedAt.Equal(executed) || !got.PurgeAt.Equal(store.Never)) {
			t.Errorf("%s: attempts %d, history %v, finished at %v, purged at %v", status, got.Attempts, got.History, got.FinishedAt, got.PurgeAt)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWhatCannotBeImportedIsRefusedWithTheReason(t *testing.T) {
	rules := timers.Import{Callbacks: map[string]timers.Checker{"http": &httptarget.Target{}}}
	for want, change := range map[string]func(*timers.Foreign){
		`id "7" is not a UUID`:              func(f *timers.Foreign) { f.ID = "7" },
		`status "paused" is none of`:        func(f *timers.Foreign) { f.Status = "paused" },
		"callback_config is not a callback": func(f *timers.Foreign) { f.CallbackConfig = json.RawMessage(`[]`) },
		"callback.topic is missing":         func(f *timers.Foreign) { f.CallbackConfig = json.RawMessage(`{"type":"nats"}`) },
		"give http or https":                func(f *timers.Foreign) { f.CallbackConfig = json.RawMessage(`{"url":"ftp://example.com"}`) },
	} {
		f := foreign("pending")
		change(&f)
		if _, err := rules.Message(&f); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %q", err, want)
		}
	}
}

func TestAFinishedTimerIsImportedThoughItCouldNotBeDeliveredToday(t *testing.T) {
	rules := timers.Import{Retention: time.Hour, Callbacks: map[string]timers.Checker{"http": &httptarget.Target{}}}
	f := foreign("canceled")
	f.CallbackConfig = json.RawMessage(`{"url":"ftp://example.com"}`)
	m, err := rules.Message(&f)
	if err != nil || m.State != belfry.Canceled || !m.PurgeAt.Equal(executed.Add(time.Hour)) {
		t.Errorf("it became %+v, %v", m, err)
	}
}

func TestAnOverdueTimerCanBeImportedAsFailed(t *testing.T) {
	var rules timers.Import
	f := foreign("pending")
	m, err := rules.Message(&f)
	if err != nil {
		t.Fatal(err)
	}
	rules.Fail(&m, "overdue", executed)
	if m.State != belfry.Dead || m.LastError != "overdue" || !m.FinishedAt.Equal(executed) || !m.PurgeAt.Equal(store.Never) {
		t.Errorf("it became %+v", m)
	}
}
