package telemetry_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/belfryhq/belfry"
	"github.com/belfryhq/belfry/store/memstore"
	"github.com/belfryhq/belfry/target"
	"github.com/belfryhq/belfry/telemetry"
)

// canaries are tokens of what must not be told, by where they stand.
var canaries = map[string]string{
	"payload": "canary-payload", "header": "canary-header", "param": "canary-param", "metadata": "canary-metadata",
	"user": "canary-user", "path": "canary-path", "query": "canary-query", "group": "canary-group",
	"dedup key": "canary-dedup", "error": "canary-error", "response": "canary-response", "panic": "canary-panic",
}

func TestNothingSecretIsTold(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newScraped(t, telemetry.MetricsSettings{})
		traces, _, exporter := newTraces()
		worker := belfry.WorkerSettings{
			Targets:    map[string]belfry.Target{"http": target.Func(indiscreet)},
			Middleware: []belfry.Middleware{m.Middleware(), traces.Middleware()},
		}
		c, w, stop := running(t, m.Store(memstore.New()), belfry.Settings{Annotate: traces.Annotate}, worker)
		m.Watch(w)
		address := fmt.Sprintf("https://%s@example.com/%s?key=%s", canaries["user"], canaries["path"], canaries["query"])
		message, err := c.Schedule(t.Context(), "kind", canaries["payload"], belfry.To("http", address),
			belfry.Header("Authorization", canaries["header"]), belfry.Param("method", canaries["param"]),
			belfry.Metadata([]byte(`"`+canaries["metadata"]+`"`)), belfry.Group(canaries["group"]),
			belfry.DedupKey(canaries["dedup key"]), belfry.MaxAttempts(3))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if got, err := c.Get(t.Context(), message.Queue, message.ID); err != nil || got.State != belfry.Dead {
			t.Fatalf("the message is %v (%v), want dead after all its attempts", got.State, err)
		}
		stop()
		told := exposition(t, m) + exported(t, exporter.GetSpans())
		if !strings.Contains(told, "belfry_attempts_total") || !strings.Contains(told, "process default") {
			t.Fatal("nothing was told at all")
		}
		for where, canary := range canaries {
			if strings.Contains(told, canary) {
				t.Errorf("the %s is told", where)
			}
		}
	})
}

// indiscreet is a target that fails with all it knows in its error.
func indiscreet(_ context.Context, d belfry.Delivery) error {
	d.Observe(500, []byte(canaries["response"]))
	switch d.Attempt {
	case 1:
		panic(canaries["panic"])
	case 2:
		return fmt.Errorf("%s: post %s with %v %v %s", canaries["error"], d.Address, d.Headers, d.Params, d.Payload)
	default:
		return belfry.Permanent(errors.New(canaries["error"]))
	}
}

// exposition is what a scrape reads.
func exposition(t *testing.T, m scraped) string {
	t.Helper()
	response := httptest.NewRecorder()
	promhttp.HandlerFor(m.reg, promhttp.HandlerOpts{}).ServeHTTP(response, httptest.NewRequest("GET", "/metrics", nil))
	if response.Code != http.StatusOK {
		t.Fatalf("the scrape failed: %s", response.Body)
	}
	return response.Body.String()
}

// exported is all that spans contain.
func exported[S any](t *testing.T, spans S) string {
	t.Helper()
	text, err := json.Marshal(spans)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s %+v", text, spans)
}
