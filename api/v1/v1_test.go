package v1_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/belfryhq/belfry"
	"github.com/belfryhq/belfry/api/auth"
	v1 "github.com/belfryhq/belfry/api/v1"
	"github.com/belfryhq/belfry/store/memstore"
)

var secret = strings.Repeat("s", auth.MinKey)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

func newAPI(t *testing.T) http.Handler {
	return newHandler(t, belfry.New(memstore.New(), belfry.Settings{Logger: quiet}))
}

func newHandler(t *testing.T, c *belfry.Client) http.Handler {
	keys, err := auth.Parse("test:" + secret)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return v1.New(c, v1.Settings{Keys: keys, Logger: quiet, Targets: map[string]v1.Checker{"http": nil}})
}

func call(h http.Handler, method, path, body string, headers ...string) (*httptest.ResponseRecorder, v1.Message) {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("X-API-Key", secret)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	var m v1.Message
	_ = json.Unmarshal(w.Body.Bytes(), &m)
	return w, m
}

func TestAMessagesLifeOverREST(t *testing.T) {
	h := newAPI(t)
	w, m := call(h, "POST", "/api/v1/messages", `{"queue":"a/b","id":"x y","kind":"k","payload":{"n": 1},"in":"1h","priority":-3,"dedup_key":"d","metadata":{"m":1}}`)
	if w.Code != 201 || m.State != "scheduled" || m.PayloadText != `{"n": 1}` || m.Priority != -3 || m.ContentType != "application/json" {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	path := w.Header().Get("Location")
	if w, again := call(h, "POST", "/api/v1/messages", `{"queue":"a/b","kind":"k","dedup_key":"d"}`); w.Code != 200 || again.ID != m.ID {
		t.Errorf("the same dedup key: %d %s", w.Code, w.Body)
	}
	w, got := call(h, "GET", path, "")
	if w.Code != 200 || got.ID != "x y" || got.Queue != "a/b" {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	tag := w.Header().Get("ETag")
	if w, changed := call(h, "PATCH", path, `{"payload_text":"new","at":"2999-01-01T00:00:00Z"}`, "If-Match", tag); w.Code != 200 || changed.PayloadText != "new" || changed.FireAt.Year() != 2999 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w, _ := call(h, "PATCH", path, `{"payload_text":"newer"}`, "If-Match", tag); w.Code != 412 {
		t.Errorf("a stale If-Match: %d %s", w.Code, w.Body)
	}
	if w, m := call(h, "DELETE", path, ""); w.Code != 200 || m.State != "canceled" || m.FinishedAt == nil {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w, _ := call(h, "PATCH", path, `{"payload_text":"late"}`); w.Code != 409 {
		t.Errorf("a change of a canceled message: %d %s", w.Code, w.Body)
	}
	if w, m := call(h, "POST", path+"/revive", `{"in":"2h"}`); w.Code != 200 || m.State != "scheduled" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w, _ := call(h, "DELETE", path+"?purge=true", ""); w.Code != 204 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w, _ := call(h, "GET", path, ""); w.Code != 404 || w.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestListsAreFilteredAndPaged(t *testing.T) {
	h := newAPI(t)
	for _, queue := range []string{"a", "a", "a", "b"} {
		call(h, "POST", "/api/v1/messages", `{"queue":"`+queue+`","kind":"k","in":"1h"}`)
	}
	w, _ := call(h, "GET", "/api/v1/messages?queue=a&state=scheduled&limit=2&order=fire_at", "")
	var page v1.Page
	if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil || len(page.Messages) != 2 || page.Total != 3 || page.Next == "" {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	w, _ = call(h, "GET", "/api/v1/messages?queue=a&state=scheduled&limit=2&order=fire_at&cursor="+page.Next, "")
	page = v1.Page{}
	if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil || len(page.Messages) != 1 || page.Next != "" {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	for _, bad := range []string{"state=pending", "limit=0", "limit=1001", "order=id", "page=1", "cursor=nonsense"} {
		if w, _ := call(h, "GET", "/api/v1/messages?"+bad, ""); w.Code != 400 {
			t.Errorf("%s: %d %s", bad, w.Code, w.Body)
		}
	}
}

func TestATraceIsNeitherShownNorTakenNorLost(t *testing.T) {
	s := memstore.New()
	trace := "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	c := belfry.New(s, belfry.Settings{Logger: quiet, Annotate: func(_ context.Context, m *belfry.Message) {
		m.Params = map[string]string{"trace.traceparent": trace, "method": m.Params["method"]}
	}})
	h := newHandler(t, c)
	w, m := call(h, "POST", "/api/v1/messages", `{"queue":"q","id":"i","target":"http","address":"http://e.com","params":{"method":"PUT"},"in":"1h"}`)
	if w.Code != 201 || len(m.Params) != 1 || m.Params["method"] != "PUT" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w, m := call(h, "PATCH", "/api/v1/messages/q/i", `{"params":{"method":"GET"}}`); w.Code != 200 || len(m.Params) != 1 || m.Params["method"] != "GET" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	stored, err := c.Get(t.Context(), "q", "i")
	if err != nil || stored.Params["trace.traceparent"] != trace || stored.Params["method"] != "GET" {
		t.Errorf("the params are %v, %v", stored.Params, err)
	}
	if w, _ := call(h, "POST", "/api/v1/messages", `{"kind":"k","params":{"trace.traceparent":"x"}}`); w.Code != 400 || !strings.Contains(w.Body.String(), "traceparent") {
		t.Errorf("a trace in the params: %d %s", w.Code, w.Body)
	}
}

func TestEveryErrorIsAProblemDocument(t *testing.T) {
	h := newAPI(t)
	for request, want := range map[string]int{
		"GET /api/v1/nothing":        404,
		"GET /api/v1/messages/q":     404,
		"PUT /api/v1/messages":       405,
		"POST /api/v1/messages/q/i":  405,
		"DELETE /api/v1/queues/q":    405,
		"GET /api/v1/messages/q/i":   404,
		"PATCH /api/v1/messages/q/i": 404,
	} {
		method, path, _ := strings.Cut(request, " ")
		w, _ := call(h, method, path, `{}`)
		var problem struct {
			Status int
			Detail string
		}
		err := json.Unmarshal(w.Body.Bytes(), &problem)
		if err != nil || w.Code != want || problem.Status != want || problem.Detail == "" || w.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: %d %s", request, w.Code, w.Body)
		}
		if allow := w.Header().Get("Allow"); (want == 405) != (allow != "" && strings.Contains(problem.Detail, allow)) {
			t.Errorf("%s: allowed is %q: %s", request, allow, w.Body)
		}
	}
}

func TestWhatARouteDoesNotReadIsRefused(t *testing.T) {
	h := newAPI(t)
	if w, _ := call(h, "POST", "/api/v1/messages", `{"queue":"q","id":"i","kind":"k","in":"1h"}`); w.Code != 201 {
		t.Fatal(w.Body)
	}
	for _, c := range []struct{ method, path, body, says string }{
		{"PATCH", "/messages/q/i", `{"queue":"other"}`, "queue"},
		{"PATCH", "/messages/q/i", `{"id":"other"}`, "id"},
		{"PATCH", "/messages/q/i", `{"dedup_key":"other"}`, "dedup_key"},
		{"POST", "/messages/q/i/revive", `{"payload":1}`, "payload"},
		{"POST", "/messages", `{"at":"soon"}`, `at \"soon\" is not an instant`},
		{"POST", "/messages", `{"expires_at":"soon"}`, "expires_at"},
		{"POST", "/messages", `{"payload_base64":"%"}`, "payload_base64"},
		{"DELETE", "/messages/q/i?purge=yes", "", "purge"},
		{"DELETE", "/messages/q/i?interupt=true", "", "interupt"},
		{"GET", "/messages?desc=1", "", "desc"},
		{"GET", "/messages?payloads=yes", "", "payloads"},
		{"GET", "/messages?payloads=true&limit=101", "", "at most 100"},
		{"GET", "/messages?limit=1&limit=2", "", "limit"},
		{"GET", "/messages?limit=1;desc=true", "", "query"},
		{"GET", "/messages?limit=%zz", "", "query"},
	} {
		if w, _ := call(h, c.method, "/api/v1"+c.path, c.body); w.Code != 400 || !strings.Contains(w.Body.String(), c.says) {
			t.Errorf("%s %s %s: %d %s", c.method, c.path, c.body, w.Code, w.Body)
		}
	}
	if w, m := call(h, "GET", "/api/v1/messages/q/i", ""); w.Code != 200 || m.State != "scheduled" {
		t.Errorf("refused requests changed the message: %s", w.Body)
	}
}

func TestQueueSettingsAndRefusals(t *testing.T) {
	h := newAPI(t)
	if w, _ := call(h, "PUT", "/api/v1/queues/q", `{"paused":true,"note":"n","concurrency":3}`); w.Code != 200 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w, _ := call(h, "GET", "/api/v1/queues/q", ""); !strings.Contains(w.Body.String(), `"concurrency":3`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	for body, says := range map[string]string{
		`{"target":"ftp"}`:                        "not configured",
		`{"at":"2999-01-01T00:00:00Z","in":"1s"}`: "give one",
		`{"in":"soon"}`:                           "duration",
		`{"colour":1}`:                            "colour",
		`{"payload":1,"payload_text":"a"}`:        "give one",
		`{} {}`:                                   "more follows",
		`null`:                                    "object",
		`{"queue":"a","queue":"b"}`:               "twice",
		`{"Queue":"a"}`:                           "Queue",
		`{"queue":5}`:                             "queue at offset",
		"{\"payload_text\":\"\xff\"}":             "UTF-8",
		`{"queue":""}`:                            "queue",
	} {
		if w, _ := call(h, "POST", "/api/v1/messages", body); w.Code != 400 || !strings.Contains(w.Body.String(), says) {
			t.Errorf("%s: %d %s", body, w.Code, w.Body)
		}
	}
	if w, _ := call(h, "POST", "/api/v1/messages", `{}`, "Content-Type", "text/plain"); w.Code != 415 {
		t.Errorf("a body that is no JSON: %d", w.Code)
	}
	if w, _ := call(h, "GET", "/api/v1/messages", "", "X-API-Key", "wrong"); w.Code != 401 {
		t.Errorf("a wrong key: %d", w.Code)
	}
}
