package timers_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belfryhq/belfry"
	"github.com/belfryhq/belfry/api/auth"
	"github.com/belfryhq/belfry/api/timers"
	"github.com/belfryhq/belfry/store"
	"github.com/belfryhq/belfry/store/memstore"
)

var (
	secret = strings.Repeat("s", auth.MinKey)
	quiet  = slog.New(slog.NewTextHandler(io.Discard, nil))
)

// server is the API over a memory store, with a worker whose callbacks are recorded.
type server struct {
	t      *testing.T
	url    string
	client *belfry.Client
	store  *memstore.Store

	mu         sync.Mutex
	deliveries []belfry.Delivery
	answer     func(d belfry.Delivery) error
	came       chan belfry.Delivery
}

// checked refuses what a test calls bad.
type checked struct{}

func (checked) Check(d belfry.Delivery) error {
	if strings.Contains(d.Address, "bad") {
		return errors.New("address is bad: use another")
	}
	return nil
}

func newServer(t *testing.T, change func(*timers.Settings)) *server {
	t.Helper()
	keys, err := auth.Parse("test:" + secret)
	if err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, store: memstore.New(), came: make(chan belfry.Delivery, 1000)}
	s.client = belfry.New(s.store, belfry.Settings{Logger: quiet})
	settings := timers.Settings{
		Keys: keys, Logger: quiet, Callbacks: map[string]timers.Checker{"http": checked{}, "nats": checked{}},
	}
	if change != nil {
		change(&settings)
	}
	deliver := belfry.TargetFunc(func(_ context.Context, d belfry.Delivery) error {
		s.mu.Lock()
		s.deliveries = append(s.deliveries, d)
		answer := s.answer
		s.mu.Unlock()
		defer func() { s.came <- d }()
		if answer != nil {
			return answer(d)
		}
		return nil
	})
	w, err := belfry.NewWorker(s.client, belfry.WorkerSettings{
		Queues: []belfry.QueueWorker{{Name: timers.Queue}}, Targets: map[string]belfry.Target{"http": deliver, "nats": deliver},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	h := httptest.NewServer(timers.New(s.client, settings))
	t.Cleanup(func() {
		h.Close()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		s.client.Close()
	})
	s.url = h.URL
	return s
}

// answered is a reply.
type answered struct {
	status int
	header http.Header
	body   string
	Code   int             `json:"code"`
	Text   string          `json:"message"`
	Data   json.RawMessage `json:"data"`
}

func (a answered) data(field string) any {
	var data map[string]any
	_ = json.Unmarshal(a.Data, &data)
	return data[field]
}

func (s *server) do(method, path, body string, headers ...string) answered {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("X-API-Key", secret)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	a := answered{status: res.StatusCode, header: res.Header, body: string(text), Code: -1}
	if err := json.Unmarshal(text, &a); err != nil {
		s.t.Fatalf("%s %s answered %d with no envelope: %s", method, path, res.StatusCode, text)
	}
	return a
}

// create makes a timer that must be accepted and returns its id.
func (s *server) create(body string) string {
	s.t.Helper()
	a := s.do("POST", "/timers", body)
	if a.status != http.StatusCreated {
		s.t.Fatalf("POST /timers: %d %s", a.status, a.body)
	}
	return a.data("id").(string)
}

func (s *server) delivered() belfry.Delivery {
	s.t.Helper()
	select {
	case d := <-s.came:
		return d
	case <-time.After(10 * time.Second):
		s.t.Fatal("nothing was delivered")
		return belfry.Delivery{}
	}
}

// becomes waits until a timer has a status.
func (s *server) becomes(id, status string) answered {
	s.t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		a := s.do("GET", "/timers/"+id, "")
		if a.data("status") == status {
			return a
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("the timer is not %s: %s", status, a.body)
		}
		time.Sleep(5 * time.Millisecond) // polls another goroutine's progress
	}
}

const far = `"execute_at":"2999-12-01T15:30:00Z"`

func http1(extra string) string {
	return `{` + far + `,"callback":{"type":"http","url":"https://api.example.com/hook"` + extra + `}}`
}

func TestCreateAnswersWithTheContract(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(s *timers.Settings) { s.MinDelay = 5 * time.Second })
	a := s.do("POST", "/timers", `{"execute_at":"2999-12-01T17:30:00.0001+02:00","callback":{"type":"http",
		"url":"https://api.example.com/hook","headers":{"Authorization":"Bearer t"},"payload":{"any":"json"}},"metadata":{"client_ref":"order-456"}}`)
	if a.status != 201 || a.Code != 0 || a.Text != "timer created successfully" {
		t.Fatalf("%d %s", a.status, a.body)
	}
	var data map[string]any
	if err := json.Unmarshal(a.Data, &data); err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"id", "created_at", "execute_at", "callback_type", "status", "executed_at"} {
		if _, ok := data[field]; !ok {
			t.Errorf("field %s is missing: %s", field, a.body)
		}
	}
	if len(data) != 6 || data["execute_at"] != "2999-12-01T15:30:00.001Z" || data["status"] != "pending" || data["executed_at"] != nil {
		t.Errorf("data is %s", a.Data)
	}
	g := s.do("GET", "/timers/"+data["id"].(string), "")
	var got map[string]any
	if err := json.Unmarshal(g.Data, &got); err != nil {
		t.Fatal(err)
	}
	want := `map[any:json]`
	config := got["callback_config"].(map[string]any)
	if g.Text != "success" || fmt.Sprint(config["payload"]) != want || config["type"] != "http" || len(config) != 4 ||
		fmt.Sprint(got["metadata"]) != "map[client_ref:order-456]" || got["last_error"] != nil || len(got) != 10 {
		t.Errorf("GET answered %s", g.body)
	}
}

func TestInvalidRequestsAreRefusedWithTheRemedy(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(s *timers.Settings) { s.MinDelay, s.MaxBody = 5*time.Second, 4096 })
	soon := time.Now().Add(4 * time.Second).Format(time.RFC3339Nano)
	for name, c := range map[string]struct {
		body   string
		status int
		says   string
	}{
		"no instant":            {`{"callback":{"type":"http","url":"https://e.com"}}`, 400, "execute_at is missing"},
		"a null instant":        {`{"execute_at":null,"callback":{"type":"http","url":"https://e.com"}}`, 400, "execute_at is missing"},
		"an instant too near":   {`{"execute_at":"` + soon + `","callback":{"type":"http","url":"https://e.com"}}`, 400, "execute_at must be in the future"},
		"a past instant":        {`{"execute_at":"2001-01-01T00:00:00Z","callback":{"type":"http","url":"https://e.com"}}`, 400, "execute_at must be in the future"},
		"a delay too short":     {`{"delay":"5s","callback":{"type":"http","url":"https://e.com"}}`, 400, "execute_at must be in the future"},
		"no instant at all":     {`{"execute_at":"tomorrow","callback":{"type":"http","url":"https://e.com"}}`, 400, `"tomorrow"`},
		"an instant no string":  {`{"execute_at":5,"callback":{"type":"http","url":"https://e.com"}}`, 400, "execute_at"},
		"two instants":          {`{` + far + `,"delay":"1h","callback":{"type":"http","url":"https://e.com"}}`, 400, "give one"},
		"a bad delay":           {`{"delay":"soon","callback":{"type":"http","url":"https://e.com"}}`, 400, "PT1H30M"},
		"a negative delay":      {`{"delay":"-1h","callback":{"type":"http","url":"https://e.com"}}`, 400, "delay"},
		"an unknown zone":       {`{"execute_at_local":"2999-01-01T00:00","timezone":"Mars/Base","callback":{"type":"http","url":"https://e.com"}}`, 400, "IANA"},
		"a zone alone":          {`{` + far + `,"timezone":"UTC","callback":{"type":"http","url":"https://e.com"}}`, 400, "execute_at_local"},
		"no callback":           {`{` + far + `}`, 400, "callback is missing"},
		"another type":          {`{` + far + `,"callback":{"type":"smtp"}}`, 400, "neither http nor nats"},
		"no url":                {`{` + far + `,"callback":{"type":"http"}}`, 400, "callback.url"},
		"no topic":              {`{` + far + `,"callback":{"type":"nats"}}`, 400, "callback.topic"},
		"a topic with http":     {http1(`,"topic":"a"`), 400, "callback.topic"},
		"what the target fears": {`{` + far + `,"callback":{"type":"http","url":"https://bad.example"}}`, 400, "use another"},
		"an unknown field":      {`{` + far + `,"calback":{}}`, 400, `"calback"`},
		"an unknown inner":      {http1(`,"verb":"GET"`), 400, `"verb"`},
		"a field twice":         {`{` + far + `,` + far + `}`, 400, "twice"},
		"a field in other case": {`{"Execute_At":"2999-01-01T00:00:00Z","callback":{"type":"http","url":"https://e.com"}}`, 400, `"Execute_At"`},
		"no UTF-8":              {http1(",\"payload\":\"\xff\""), 400, "not UTF-8"},
		"a header that is null": {http1(`,"headers":{"A":null}`), 400, "callback.headers.A"},
		"an array":              {`[]`, 400, "object"},
		"a string":              {`"x"`, 400, "object"},
		"no JSON":               {`{"a":}`, 400, "offset 5"},
		"cut off JSON":          {`{"a":{`, 400, "offset"},
		"trailing data":         {http1("") + `{}`, 400, "more follows"},
		"deep nesting":          {http1(`,"payload":` + strings.Repeat("[", 40) + strings.Repeat("]", 40)), 400, "deeper than 32"},
		"a large body":          {http1(`,"payload":"` + strings.Repeat("x", 5000) + `"`), 413, "4096"},
		"a header no string":    {http1(`,"headers":{"A":5}`), 400, "callback.headers"},
		"an early expiry":       {`{` + far + `,"expires_at":"2998-01-01T00:00:00Z","callback":{"type":"http","url":"https://e.com"}}`, 400, "expires_at"},
		"a bad policy":          {`{` + far + `,"retry":{"attempts":3,"backoff":"quick"},"callback":{"type":"http","url":"https://e.com"}}`, 400, "quick"},
		"a bad timeout":         {http1(`,"timeout":"long"`), 400, "callback.timeout"},
		"both spellings":        {`{` + far + `,"callback_url":"https://e.com","callback":{"type":"http","url":"https://e.com"}}`, 400, "give one"},
		"an empty key":          {`{` + far + `,"idempotency_key":"","callback":{"type":"http","url":"https://e.com"}}`, 400, "idempotency_key"},
	} {
		t.Run(name, func(t *testing.T) {
			a := s.do("POST", "/timers", c.body)
			if a.status != c.status || a.Code != 2 || !strings.Contains(a.Text, c.says) || string(a.Data) != "null" {
				t.Errorf("%d %s; want %d and %q", a.status, a.body, c.status, c.says)
			}
		})
	}
	if a := s.do("GET", "/timers", ""); a.data("total") != 0.0 {
		t.Errorf("refused requests left timers behind: %s", a.body)
	}
	if a := s.do("POST", "/timers", http1(""), "Content-Type", "application/x-www-form-urlencoded"); a.status != 415 || a.Code != 2 {
		t.Errorf("a form: %d %s", a.status, a.body)
	}
}

func TestEveryRouteNeedsAKeyAndKnowsItsMethods(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	id := s.create(http1(""))
	for _, route := range []string{"GET /timers", "POST /timers", "POST /timers/batch", "GET /timers/" + id, "PUT /timers/" + id, "DELETE /timers/" + id, "GET /timers/a/b"} {
		method, path, _ := strings.Cut(route, " ")
		for _, key := range []string{"", "wrong"} {
			if a := s.do(method, path, "", "X-API-Key", key); a.status != 401 || a.Code != 4 || a.Text != "unauthorized" {
				t.Errorf("%s with key %q: %d %s", route, key, a.status, a.body)
			}
		}
	}
	for path, allow := range map[string]string{
		"/timers": "GET, HEAD, POST", "/timers/" + id: "DELETE, GET, HEAD, PUT", "/timers/batch": "POST", "/healthz": "GET, HEAD",
	} {
		if a := s.do("PATCH", path, ""); a.status != 405 || a.Code != 2 || a.header.Get("Allow") != allow {
			t.Errorf("PATCH %s: %d %q %s", path, a.status, a.header.Get("Allow"), a.body)
		}
	}
	for path, status := range map[string]int{"/timers": 200, "/timers/" + id: 200, "/healthz": 200, "/timers/x": 400, "/timers/batch": 405} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodHead, s.url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-API-Key", secret)
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != status || res.ContentLength < 1 {
			t.Errorf("HEAD %s: %d with length %d", path, res.StatusCode, res.ContentLength)
		}
	}
	if a := s.do("GET", "/healthz", "", "X-API-Key", ""); a.status != 200 || a.Text != "healthy" || a.data("database") != "connected" || a.data("status") != "up" {
		t.Errorf("health: %d %s", a.status, a.body)
	}
}

func TestInstantsAndDurationsAreReadAsISO8601WritesThem(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(s *timers.Settings) { s.Retention = 720 * time.Hour })
	create := func(when string) answered {
		return s.do("POST", "/timers", `{`+when+`,"idempotency_key":`+fmt.Sprintf("%q", strings.ReplaceAll(when, `"`, ""))+`,"callback":{"type":"http","url":"https://e.com"}}`)
	}
	for given, want := range map[string]string{
		"2030-01-01T00:00:00Z":          "2030-01-01T00:00:00Z",
		"2030-01-01t00:00:00z":          "2030-01-01T00:00:00Z",
		"2030-01-01T02:00:00.5+02:00":   "2030-01-01T00:00:00.5Z",
		"2030-01-01T02:00:00.0001+0200": "2030-01-01T00:00:00.001Z",
		"2030-01-01T02:00:00,25+02":     "2030-01-01T00:00:00.25Z",
		"2030-01-01T02:00+02:00":        "2030-01-01T00:00:00Z",
		"2030-01-01T02:00+0200":         "2030-01-01T00:00:00Z",
		"2029-12-31T22:00-02":           "2030-01-01T00:00:00Z",
		"9999-12-31T23:59:59.999Z":      "9999-12-31T23:59:59.999Z", // kept for 30 days more than there are
		"2030-01-01":                    "",
		"2030-01-01T00:00:00":           "",
		"2030-01-01T00:00:00+25:00":     "",
		"10000-01-01T00:00:00Z":         "",
	} {
		a := create(`"execute_at":"` + given + `"`)
		if want == "" && (a.status != 400 || !strings.Contains(a.Text, "execute_at")) || want != "" && (a.status != 201 || a.data("execute_at") != want) {
			t.Errorf("%s: %d %s", given, a.status, a.body)
		}
	}
	for given, want := range map[string]time.Duration{
		"90m": 90 * time.Minute, "PT1H30M": 90 * time.Minute, "pt1h30m": 90 * time.Minute, "P1D": 24 * time.Hour, "P1W": 168 * time.Hour, "PT0.5S": time.Second / 2,
		"P1M": -1, "P1Y": -1, "P": -1, "PT": -1, "-PT1H": -1, "-1h": -1, "1d": -1, "P300000W": -1, "9999999999h": -1, "": -1,
	} {
		before := time.Now()
		a := create(`"delay":"` + given + `"`)
		if want < 0 {
			if a.status != 400 || !strings.Contains(a.Text, "delay") {
				t.Errorf("%s: %d %s", given, a.status, a.body)
			}
			continue
		}
		text, _ := a.data("execute_at").(string)
		at, err := time.Parse(time.RFC3339, text)
		if off := at.Sub(before) - want; err != nil || off < 0 || off > 10*time.Second {
			t.Errorf("%s: %d %s", given, a.status, a.body)
		}
	}
}

func TestTimersFireAtTheirInstantsWithTheirPayload(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	payload := `{"b": 1.50, "a": [ "<é>" ],  "n": 12345678901234567890}`
	id := s.create(`{"delay":"300ms","callback":{"type":"http","url":"https://e.com/x","method":"put","headers":{"X-A":"1"},"payload":` + payload + `}}`)
	d := s.delivered()
	if late := time.Since(d.FireAt); late < 0 || late > time.Second {
		t.Errorf("delivered %v after its instant", late)
	}
	if string(d.Payload) != payload || d.Headers["X-A"] != "1" || d.ContentType != "application/json" || d.Params["method"] != "PUT" || d.ID != id {
		t.Errorf("delivered %+v", d)
	}
	a := s.becomes(id, "completed")
	if a.data("executed_at") == nil || a.data("last_error") != nil {
		t.Errorf("completed: %s", a.body)
	}
	id = s.create(`{"delay":"PT0S","callback":{"type":"nats","topic":"events.timer","key":"user123","payload":null}}`)
	if d := s.delivered(); d.Target != "nats" || d.Address != "events.timer" || d.Params["key"] != "user123" || len(d.Payload) != 0 {
		t.Errorf("delivered %+v", d)
	}
	if a := s.becomes(id, "completed"); !strings.Contains(a.body, `"payload":null`) || strings.Contains(a.body, `"url"`) {
		t.Errorf("the callback was not returned as given: %s", a.body)
	}
}

func TestAFailedCallbackFailsTheTimerOrIsTriedAgain(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	s.answer = func(d belfry.Delivery) error {
		if d.Attempt < 3 {
			return errors.New("HTTP 500")
		}
		return nil
	}
	failed := s.create(`{"delay":"0s","callback":{"type":"http","url":"https://e.com"}}`)
	a := s.becomes(failed, "failed")
	if a.data("last_error") != "HTTP 500" || a.data("executed_at") == nil {
		t.Errorf("failed: %s", a.body)
	}
	retried := s.create(`{"delay":"0s","retry":{"attempts":3,"backoff":"fixed","base":"10ms"},"callback":{"type":"http","url":"https://e.com"}}`)
	if a := s.becomes(retried, "completed"); a.data("last_error") != nil {
		t.Errorf("completed: %s", a.body)
	}
	for verb, method := range map[string]string{"cancel": "DELETE", "update": "PUT"} {
		body := ""
		if method == "PUT" {
			body = `{}`
		}
		for id, status := range map[string]string{failed: "failed", retried: "completed"} {
			want := fmt.Sprintf("cannot %s timer with status '%s'", verb, status)
			if a := s.do(method, "/timers/"+id, body); a.status != 400 || a.Code != 2 || a.Text != want {
				t.Errorf("%s of a %s timer: %d %s", verb, status, a.status, a.body)
			}
		}
	}
}

func TestAnExecutingTimerCannotBeChanged(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	started, release := make(chan struct{}), make(chan struct{})
	s.answer = func(belfry.Delivery) error { close(started); <-release; return nil }
	id := s.create(`{"delay":"0s","callback":{"type":"http","url":"https://e.com"}}`)
	<-started
	if a := s.do("GET", "/timers/"+id, ""); a.data("status") != "executing" {
		t.Errorf("%s", a.body)
	}
	if a := s.do("DELETE", "/timers/"+id, ""); a.status != 400 || a.Text != "cannot cancel timer with status 'executing'" {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := s.do("PUT", "/timers/"+id, `{"metadata":1}`); a.status != 400 || a.Text != "cannot update timer with status 'executing'" {
		t.Errorf("%d %s", a.status, a.body)
	}
	close(release)
	s.becomes(id, "completed")
}

func TestACanceledTimerStaysReadableAndCancelRepeats(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	id := s.create(http1(""))
	for range 2 {
		a := s.do("DELETE", "/timers/"+id, "")
		if a.status != 200 || a.Text != "timer canceled successfully" || string(a.Data) != `{"id":"`+id+`","status":"canceled"}` {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	if a := s.do("GET", "/timers/"+id, ""); a.data("status") != "canceled" || a.data("executed_at") != nil {
		t.Errorf("%s", a.body)
	}
	if a := s.do("PUT", "/timers/"+id, `{}`); a.status != 400 || a.Text != "cannot update timer with status 'canceled'" {
		t.Errorf("%d %s", a.status, a.body)
	}
	for _, method := range []string{"GET", "DELETE"} {
		if a := s.do(method, "/timers/019b0000-0000-7000-8000-000000000000", ""); a.status != 404 || a.Code != 3 || a.Text != "timer not found" {
			t.Errorf("%s of a missing timer: %d %s", method, a.status, a.body)
		}
		if a := s.do(method, "/timers/nonsense", ""); a.status != 400 || a.Code != 2 {
			t.Errorf("%s of a malformed id: %d %s", method, a.status, a.body)
		}
	}
}

func TestUpdateChangesWhatIsGiven(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(s *timers.Settings) { s.MinDelay = 5 * time.Second })
	id := s.create(`{` + far + `,"metadata":{"a":1},"callback":{"type":"http","url":"https://e.com","payload":1}}`)
	before := s.do("GET", "/timers/"+id, "")
	for name, body := range map[string]string{
		"nothing": `{}`, "nulls": `{"execute_at":null,"callback":null,"metadata":null}`, "a reply's own fields": string(before.Data),
	} {
		a := s.do("PUT", "/timers/"+id, body)
		if a.status != 200 || a.Text != "timer updated successfully" || a.data("updated_at") == nil {
			t.Fatalf("%s: %d %s", name, a.status, a.body)
		}
		if g := s.do("GET", "/timers/"+id, ""); fmt.Sprint(g.data("metadata"), g.data("callback_config")) != fmt.Sprint(before.data("metadata"), before.data("callback_config")) {
			t.Errorf("%s changed the timer: %s", name, g.body)
		}
	}
	a := s.do("PUT", "/timers/"+id, `{"execute_at":"2998-01-01T00:00:00+01:00","callback":{"type":"nats","topic":"a.b"},"metadata":[2]}`)
	if a.status != 200 || a.data("execute_at") != "2997-12-31T23:00:00Z" || a.data("callback_type") != "nats" {
		t.Fatalf("%d %s", a.status, a.body)
	}
	g := s.do("GET", "/timers/"+id, "")
	if fmt.Sprint(g.data("callback_config")) != "map[topic:a.b type:nats]" || fmt.Sprint(g.data("metadata")) != "[2]" {
		t.Errorf("%s", g.body)
	}
	for _, body := range []string{`{"execute_at":"2001-01-01T00:00:00Z"}`, `{"callback":{"type":"nats"}}`, `{"unknown":1}`, `{"execute_at":`} {
		if a := s.do("PUT", "/timers/"+id, body); a.status != 400 || a.Code != 2 {
			t.Errorf("%s: %d %s", body, a.status, a.body)
		}
	}
	if after := s.do("GET", "/timers/"+id, ""); string(after.Data) != string(g.Data) {
		t.Errorf("refused updates changed the timer:\n%s\n%s", g.Data, after.Data)
	}
}

func TestATimersTraceOutlivesItsCallback(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	id := s.create(http1(`,"method":"PUT"`))
	trace := map[string]string{"trace.traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}
	if _, err := s.client.Update(t.Context(), timers.Queue, id, func(m *belfry.Message) error {
		m.Params = trace // as a client with traces accepts it
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for body, want := range map[string]string{
		`{"callback":{"type":"nats","topic":"a","key":"k"}}`:                  "map[key:k trace.traceparent:" + trace["trace.traceparent"] + "]",
		`{"callback":{"type":"http","url":"https://e.com"}}`:                  "map[trace.traceparent:" + trace["trace.traceparent"] + "]",
		`{"callback":{"type":"http","url":"https://e.com","method":"patch"}}`: "map[method:PATCH trace.traceparent:" + trace["trace.traceparent"] + "]",
	} {
		if a := s.do("PUT", "/timers/"+id, body); a.status != 200 {
			t.Fatalf("%d %s", a.status, a.body)
		}
		m, err := s.client.Get(t.Context(), timers.Queue, id)
		if err != nil || fmt.Sprint(m.Params) != want {
			t.Errorf("after %s the params are %v, %v; want %s", body, m.Params, err, want)
		}
	}
}

func TestListPagesAreExact(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	for i := range 7 {
		s.create(fmt.Sprintf(`{"execute_at":"2999-01-0%dT00:00:00Z","callback":{"type":"http","url":"https://e.com"}}`, 7-i))
	}
	s.do("DELETE", "/timers/"+s.create(http1("")), "")
	page := func(query string) (days []string, total any) {
		a := s.do("GET", "/timers?"+query, "")
		var data struct {
			Timers []struct {
				At time.Time `json:"execute_at"`
			} `json:"timers"`
		}
		if err := json.Unmarshal(a.Data, &data); err != nil || a.status != 200 {
			t.Fatalf("%s: %d %s", query, a.status, a.body)
		}
		for _, timer := range data.Timers {
			days = append(days, timer.At.Format("02"))
		}
		return days, a.data("total")
	}
	for query, want := range map[string]string{
		"status=pending&sort=execute_at&order=asc&limit=3":          "[01 02 03] 7",
		"status=pending&sort=execute_at&order=asc&limit=3&offset=6": "[07] 7",
		"status=pending&sort=execute_at&limit=2":                    "[07 06] 7",
		"status=pending&limit=2&order=asc&sort=created_at":          "[07 06] 7",
		"status=canceled": "[01] 1",
		"status=failed":   "[] 0",
	} {
		if days, total := page(query); fmt.Sprint(days, total) != strings.Replace(want, "] ", "] ", 1) {
			t.Errorf("%s: %v %v, want %s", query, days, total, want)
		}
	}
	if days, total := page(""); len(days) != 8 || total != 8.0 {
		t.Errorf("%d timers of %v", len(days), total)
	}
	for _, broken := range []string{"limit=1;offset=5", "limit=%zz"} {
		if a := s.do("GET", "/timers?"+broken, ""); a.status != 400 || a.Code != 2 {
			t.Errorf("%s: %d %s", broken, a.status, a.body)
		}
	}
	for _, bad := range []string{"limit=0", "limit=201", "limit=x", "offset=-1", "status=done", "sort=id", "order=up", "page=2", "limit=1&limit=2"} {
		a := s.do("GET", "/timers?"+bad, "")
		if name, _, _ := strings.Cut(bad, "="); a.status != 400 || a.Code != 2 || !strings.Contains(a.Text, name) {
			t.Errorf("%s: %d %s", bad, a.status, a.body)
		}
	}
}

func TestAnIdempotencyKeyMakesOneTimer(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	body := `{"delay":"0s","idempotency_key":"k","callback":{"type":"http","url":"https://e.com"}}`
	id := s.create(body)
	s.becomes(id, "completed")
	a := s.do("POST", "/timers", body)
	if a.status != 200 || a.data("id") != id {
		t.Errorf("the same request again: %d %s", a.status, a.body)
	}
	a = s.do("POST", "/timers", `{"delay":"0s","callback":{"type":"http","url":"https://e.com"}}`, "Idempotency-Key", "k")
	if a.status != 200 || a.data("id") != id {
		t.Errorf("the same request with the key in the header: %d %s", a.status, a.body)
	}
	if a := s.do("POST", "/timers", strings.Replace(body, "e.com", "f.com", 1)); a.status != 400 || a.Code != 2 {
		t.Errorf("another request with the key: %d %s", a.status, a.body)
	}
	if a := s.do("POST", "/timers", body, "Idempotency-Key", "other"); a.status != 400 {
		t.Errorf("two keys: %d %s", a.status, a.body)
	}
	at := time.Now().Add(100 * time.Millisecond).UTC().Format(time.RFC3339Nano)
	passing := `{"execute_at":"` + at + `","idempotency_key":"p","callback":{"type":"http","url":"https://e.com"}}`
	id = s.create(passing)
	s.becomes(id, "completed")
	if a := s.do("POST", "/timers", passing); a.status != 200 || a.data("id") != id {
		t.Errorf("the same request after its instant: %d %s", a.status, a.body)
	}
	if a := s.do("POST", "/timers", strings.Replace(passing, `"p"`, `"q"`, 1)); a.status != 400 {
		t.Errorf("another request after its instant: %d %s", a.status, a.body)
	}
	if a := s.do("POST", "/timers/batch", `{"timers":[`+passing+`,`+http1("")+`]}`); a.status != 201 || !strings.Contains(a.body, id) {
		t.Errorf("the same request in a batch after its instant: %d %s", a.status, a.body)
	}
	var wait sync.WaitGroup
	ids := make([]any, 32)
	for i := range ids {
		wait.Go(func() { ids[i] = s.do("POST", "/timers", http1(""), "Idempotency-Key", "concurrent").data("id") })
	}
	wait.Wait()
	for _, other := range ids {
		if other != ids[0] || other == nil {
			t.Fatalf("concurrent requests made %v", ids)
		}
	}
}

func TestABatchTellsOfEachTimer(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	good, wrong := http1(""), `{"callback":{"type":"http","url":"https://e.com"}}`
	a := s.do("POST", "/timers/batch", `{"timers":[`+good+`,`+good+`]}`)
	if a.status != 201 || strings.Count(a.body, `"status":"pending"`) != 2 {
		t.Errorf("%d %s", a.status, a.body)
	}
	a = s.do("POST", "/timers/batch", `{"timers":[`+good+`,`+wrong+`]}`)
	if a.status != 200 || !strings.Contains(a.body, `{"index":1,"code":2,"error":"execute_at is missing`) {
		t.Errorf("%d %s", a.status, a.body)
	}
	a = s.do("POST", "/timers/batch", `{"atomic":true,"timers":[`+good+`,`+wrong+`]}`)
	if a.status != 400 || a.Code != 2 {
		t.Errorf("%d %s", a.status, a.body)
	}
	keyed := strings.Replace(good, `{`, `{"idempotency_key":"k",`, 1)
	s.create(keyed)
	a = s.do("POST", "/timers/batch", `{"atomic":true,"timers":[`+good+`,`+keyed+`]}`)
	if a.status != 400 || a.Code != 2 {
		t.Errorf("an atomic batch with a key in use: %d %s", a.status, a.body)
	}
	if a := s.do("GET", "/timers", ""); a.data("total") != 4.0 {
		t.Errorf("%v timers exist, want 4", a.data("total"))
	}
	nul := strings.Replace(good, `{`, `{"idempotency_key":"a\u0000b",`, 1) // only the client finds out
	a = s.do("POST", "/timers/batch", `{"timers":[`+good+`,`+nul+`,`+good+`]}`)
	if a.status != 200 || strings.Count(a.body, `"status":"pending"`) != 2 || !strings.Contains(a.body, `{"index":1,"code":2,"error":"invalid dedup key`) {
		t.Errorf("one that is invalid for the client: %d %s", a.status, a.body)
	}
	if a := s.do("POST", "/timers/batch", `{"timers":[`+good+`]}`, "Idempotency-Key", "k2"); a.status != 400 || !strings.Contains(a.Text, "idempotency_key") {
		t.Errorf("a key for a whole batch: %d %s", a.status, a.body)
	}
	for _, body := range []string{`{"timers":[]}`, `{"timers":[` + strings.Repeat(good+",", 1000) + good + `]}`} {
		if a := s.do("POST", "/timers/batch", body); a.status != 400 {
			t.Errorf("%d %.200s", a.status, a.body)
		}
	}
}

func TestTheOlderSpellingWorks(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	s.create(`{"delay":"0s","callback_url":"https://e.com","callback_payload":{"a":1},"callback_headers":{"X":"y"}}`)
	if d := s.delivered(); d.Address != "https://e.com" || string(d.Payload) != `{"a":1}` || d.Headers["X"] != "y" {
		t.Errorf("delivered %+v", d)
	}
}

func TestLocalTimesFollowTheirZone(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	for local, want := range map[string]string{
		"2027-07-01T12:00:00": "2027-07-01T10:00:00Z",
		"2027-03-28T02:30":    "2027-03-28T01:30:00Z", // in the gap: as far behind it
		"2027-10-31T02:30":    "2027-10-31T00:30:00Z", // twice: the first
	} {
		a := s.do("POST", "/timers", `{"execute_at_local":"`+local+`","timezone":"Europe/Berlin","callback":{"type":"http","url":"https://e.com"}}`)
		if a.status != 201 || a.data("execute_at") != want {
			t.Errorf("%s: %d %s", local, a.status, a.body)
		}
	}
}

func TestAnExpiredTimerFails(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	now := time.Now().UTC()
	m := belfry.Message{Queue: timers.Queue, Target: "http", Address: "https://e.com", FireAt: now.Add(-time.Hour),
		ExpiresAt: now.Add(-time.Minute), Retention: belfry.Retention{Done: belfry.Forever, Dead: belfry.Forever}}
	messages := []belfry.Message{m}
	if _, err := s.client.Put(t.Context(), messages, 0); err != nil {
		t.Fatal(err)
	}
	if a := s.becomes(messages[0].ID, "failed"); a.data("last_error") != "expired" {
		t.Errorf("%s", a.body)
	}
}

func TestATimerThatTheNativeAPIMadeOrChangedIsShownAsItIs(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	put := func(m belfry.Message) string {
		t.Helper()
		m.Queue, m.FireAt = timers.Queue, time.Now().Add(time.Hour)
		messages := []belfry.Message{m}
		if _, err := s.client.Put(t.Context(), messages, 0); err != nil {
			t.Fatal(err)
		}
		return messages[0].ID
	}
	for name, c := range map[string]struct {
		m            belfry.Message
		config, meta string
	}{
		"a payload that is text":       {belfry.Message{Target: "http", Address: "https://e.com", Payload: []byte("no json")}, `{"type":"http","url":"https://e.com","payload":"no json"}`, "null"},
		"a payload that is bytes":      {belfry.Message{Target: "nats", Address: "a.b", Params: map[string]string{"key": "k"}, Payload: []byte("\xff")}, `{"type":"nats","topic":"a.b","key":"k","payload":"/w=="}`, "null"},
		"metadata of its own":          {belfry.Message{Target: "http", Address: "https://e.com", Metadata: []byte(`[1]`)}, `{"type":"http","url":"https://e.com"}`, "[1]"},
		"an object of its own":         {belfry.Message{Target: "http", Address: "https://e.com", Metadata: []byte(`{"a":1}`)}, `{"type":"http","url":"https://e.com"}`, `{"a":1}`},
		"method, timeout and a header": {belfry.Message{Target: "http", Address: "https://e.com", Params: map[string]string{"method": "PUT"}, Timeout: time.Minute, Headers: map[string]string{"A": "b"}}, `{"type":"http","url":"https://e.com","headers":{"A":"b"},"method":"PUT","timeout":"1m0s"}`, "null"},
		"a message for a handler":      {belfry.Message{Kind: "k"}, `{"type":""}`, "null"},
	} {
		id := put(c.m)
		for range 2 { // the second time after a change of nothing
			a := s.do("GET", "/timers/"+id, "")
			var data map[string]json.RawMessage
			_ = json.Unmarshal(a.Data, &data)
			if a.status != 200 || string(data["callback_config"]) != c.config || string(data["metadata"]) != c.meta {
				t.Errorf("%s: %d %s", name, a.status, a.body)
			}
			if a := s.do("PUT", "/timers/"+id, `{}`); a.status != 200 {
				t.Errorf("%s: PUT: %d %s", name, a.status, a.body)
			}
		}
	}
	id := s.create(http1(`,"method":"put","timeout":"PT1M"`))
	if a := s.do("GET", "/timers/"+id, ""); !strings.Contains(a.body, `"method":"put","timeout":"PT1M"`) {
		t.Errorf("not as given: %s", a.body)
	}
	if _, err := s.client.Update(t.Context(), timers.Queue, id, func(m *belfry.Message) error {
		m.Address, m.Params, m.Timeout = "https://other.com", nil, time.Second
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if a := s.do("GET", "/timers/"+id, ""); !strings.Contains(a.body, `"url":"https://other.com","timeout":"1s"`) {
		t.Errorf("not as it was changed: %s", a.body)
	}
}

func TestNoNATSServerIsSaidAtCreation(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(s *timers.Settings) { delete(s.Callbacks, "nats") })
	a := s.do("POST", "/timers", `{`+far+`,"callback":{"type":"nats","topic":"a"}}`)
	if a.status != 400 || !strings.Contains(a.Text, "NATS_URL") {
		t.Errorf("%d %s", a.status, a.body)
	}
}

func TestAnUnreachableStoreIsSaidSo(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	s.create(`{"delay":"0s","callback":{"type":"http","url":"http://example.com/"}}`)
	<-s.came // the worker has started: it would end if it found the store closed while it does
	id := s.create(http1(""))
	if err := s.store.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ method, path, body string }{
		{"POST", "/timers", http1("")}, {"GET", "/timers/" + id, ""}, {"GET", "/timers", ""}, {"DELETE", "/timers/" + id, ""}, {"PUT", "/timers/" + id, `{"metadata":1}`},
	} {
		a := s.do(c.method, c.path, c.body)
		if a.status != 503 || a.Code != 1 || a.header.Get("Retry-After") == "" || strings.Contains(a.body, store.ErrClosed.Error()) {
			t.Errorf("%s %s: %d %s", c.method, c.path, a.status, a.body)
		}
	}
	a := s.do("GET", "/healthz", "")
	if a.status != 500 || a.Code != 1 || a.Text != "database connection failed" || a.data("database") != "disconnected" || a.data("status") != "degraded" {
		t.Errorf("health: %d %s", a.status, a.body)
	}
}

func FuzzCreate(f *testing.F) {
	keys, _ := auth.Parse("test:" + secret)
	c := belfry.New(memstore.New(), belfry.Settings{Logger: quiet})
	h := timers.New(c, timers.Settings{Keys: keys, Logger: quiet, Callbacks: map[string]timers.Checker{"http": nil, "nats": nil}})
	f.Add(http1(""))
	f.Add(`{"delay":"PT1H","callback":{"type":"nats","topic":"x","payload":[1,{"a":null}]},"metadata":"\u0000"}`)
	f.Add(`{"execute_at":"2999-02-30T00:00:00Z"`)
	f.Fuzz(func(t *testing.T, body string) {
		r := httptest.NewRequest("POST", "/timers", strings.NewReader(body))
		r.Header.Set("X-API-Key", secret)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != 201 && w.Code != 400 && w.Code != 413 || !json.Valid(w.Body.Bytes()) {
			t.Errorf("%q: %d %s", body, w.Code, w.Body)
		}
	})
}
