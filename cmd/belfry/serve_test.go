package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The first minute of whoever tries the program: nothing is set up, and what is printed works as it is.
func TestDevPrintsLinesThatWork(t *testing.T) {
	t.Parallel()
	p := newProgram(t, t.TempDir(), nil, "serve", "--dev", "--port=0")
	p.start()
	p.out.find(t, `(?s)has arrived there:.*curl -s (\S+)`)
	text := p.out.String()
	create := regexp.MustCompile(`curl -s (\S+) -H '(X-API-Key): ([^']+)' -H '(Content-Type): ([^']+)' \\\n\s+-d '([^']+)'`).FindStringSubmatch(text)
	if create == nil {
		t.Fatalf("no line that creates a timer in:\n%s", text)
	}
	if key := p.out.find(t, `Key +(\S+)`); key != create[3] || len(key) < 32 {
		t.Errorf("the line has the key %q, printed is %q", create[3], key)
	}
	start := time.Now()
	created := call(t, http.MethodPost, create[1], create[6], create[2], create[3], create[4], create[5])
	if created.status != http.StatusCreated {
		t.Fatalf("%d %s", created.status, created.body)
	}
	show := regexp.MustCompile(`curl -s (\S+/_sink/\S+)`).FindStringSubmatch(text)[1]
	eventually(t, func() (string, bool) {
		arrived := call(t, http.MethodGet, show, "")
		return arrived.body, strings.Contains(arrived.body, `{"hello":"world"}`) && strings.Contains(arrived.body, "User-Agent: timer-platform/0.1.0")
	})
	if took := time.Since(start); took < 500*time.Millisecond {
		t.Errorf("the timer was delivered after %v, before its delay", took)
	}
	if !strings.HasPrefix(p.url(), "http://127.0.0.1:") {
		t.Errorf("listens on %s", p.url())
	}
}

func TestDevUsesTheKeyThatIsSet(t *testing.T) {
	t.Parallel()
	p := newProgram(t, t.TempDir(), []string{"API_KEY=" + apiKey}, "serve", "--dev", "--port=0", "--store=memory:")
	p.start()
	if key := p.out.find(t, `Key +(\S+)`); key != apiKey {
		t.Errorf("prints the key %q", key)
	}
	if a := call(t, http.MethodGet, p.url()+"/timers", ""); a.status != http.StatusOK {
		t.Errorf("%d %s", a.status, a.body)
	}
}

func TestWithoutDevThereIsNoSinkAndNoShortDelay(t *testing.T) {
	t.Parallel()
	p := serve(t, t.TempDir(), nil, "--store=memory:", "--addr=127.0.0.1")
	if a := call(t, http.MethodPost, p.url()+"/_sink/x", "{}"); a.status != http.StatusNotFound {
		t.Errorf("the sink answers %d", a.status)
	}
	a := call(t, http.MethodPost, p.url()+"/timers", `{"delay":"1s","callback":{"type":"http","url":"https://example.com"}}`)
	if a.status != http.StatusBadRequest || !strings.Contains(a.body, "execute_at must be in the future") {
		t.Errorf("a delay of 1s: %d %s", a.status, a.body)
	}
	if out := p.out.String(); out != "" {
		t.Errorf("prints %q", out)
	}
}

func TestTheListenersAnswerTheirOwnRoutesOnly(t *testing.T) {
	t.Parallel()
	p := serve(t, t.TempDir(), nil, "--store=memory:", "--addr=127.0.0.1", "--metrics-addr=127.0.0.1:0", "--pprof-addr=127.0.0.1:0")
	metrics := "http://" + p.log.find(t, `"msg":"listening for metrics","address":"([^"]*)"`)
	profiles := "http://" + p.log.find(t, `"msg":"listening for profiles","address":"([^"]*)"`)
	for _, tt := range []struct {
		url  string
		want int
	}{
		{p.url() + "/metrics", http.StatusNotFound},
		{p.url() + "/debug/pprof/", http.StatusNotFound},
		{p.url() + "/readyz", http.StatusOK},
		{p.url() + "/healthz", http.StatusOK},
		{p.url() + "/api/v1/messages", http.StatusOK},
		{metrics + "/metrics", http.StatusOK},
		{metrics + "/readyz", http.StatusOK},
		{metrics + "/timers", http.StatusNotFound},
		{metrics + "/debug/pprof/", http.StatusNotFound},
		{profiles + "/debug/pprof/", http.StatusOK},
		{profiles + "/timers", http.StatusNotFound},
	} {
		if a := call(t, http.MethodGet, tt.url, ""); a.status != tt.want {
			t.Errorf("%s: %d, want %d", tt.url, a.status, tt.want)
		}
	}
	if a := call(t, http.MethodGet, metrics+"/metrics", ""); !strings.Contains(a.body, "belfry_") || !strings.Contains(a.body, "go_goroutines") {
		t.Errorf("metrics:\n%s", a.body)
	}
}

func TestRoutesNeedAKeyExceptHealth(t *testing.T) {
	t.Parallel()
	p := serve(t, t.TempDir(), []string{"BELFRY_API_KEYS=billing:" + strings.Repeat("b", 32)}, "--store=memory:", "--addr=127.0.0.1")
	for path, want := range map[string]int{"/timers": 401, "/api/v1/messages": 401, "/healthz": 200, "/readyz": 200} {
		if a := call(t, http.MethodGet, p.url()+path, "", "X-API-Key", "wrong"); a.status != want {
			t.Errorf("%s without a key: %d, want %d", path, a.status, want)
		}
	}
	if a := call(t, http.MethodGet, p.url()+"/timers", "", "X-API-Key", strings.Repeat("b", 32)); a.status != http.StatusOK {
		t.Errorf("a named key: %d %s", a.status, a.body)
	}
}

func TestASecondServerOnTheSameFileIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := serve(t, dir, nil)
	code, _, log := run(t, dir, []string{"API_KEY=" + apiKey}, "serve", "--port=0")
	if code != exitFailure || !strings.Contains(log, "in use") || !strings.Contains(log, "belfry.db") {
		t.Errorf("%d %s", code, log)
	}
	if a := call(t, http.MethodGet, first.url()+"/readyz", ""); a.status != http.StatusOK {
		t.Errorf("the first server then answers %d %s", a.status, a.body)
	}
	if _, err := os.Stat(filepath.Join(dir, "belfry.db.server")); err != nil {
		t.Errorf("the first server's control file: %v", err)
	}
}

func TestATakenPortEndsTheProgram(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	dir := t.TempDir()
	code, _, log := run(t, dir, []string{"API_KEY=" + apiKey, "PORT=" + port}, "serve", "--addr=127.0.0.1")
	if code != exitFailure || !strings.Contains(log, "address already in use") {
		t.Errorf("%d %s", code, log)
	}
	if code, _, log = run(t, dir, nil, "schedule", "--http=https://example.com"); code != exitOK {
		t.Errorf("the store is not free afterwards: %d %s", code, log)
	}
}

// slowReceiver holds every request until it is released.
type slowReceiver struct {
	*httptest.Server
	arrived, release chan struct{}
}

func newSlowReceiver(t *testing.T) *slowReceiver {
	r := &slowReceiver{arrived: make(chan struct{}, 10), release: make(chan struct{})}
	r.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		r.arrived <- struct{}{}
		select {
		case <-r.release:
		case <-req.Context().Done():
		}
	}))
	t.Cleanup(r.Close)
	return r
}

// allowLoopback lets a server call receivers of the test.
const allowLoopback = "BELFRY_EGRESS_ALLOW=127.0.0.0/8"

func TestSIGTERMTurnsReadinessRedAndLetsDeliveriesFinish(t *testing.T) {
	t.Parallel()
	dir, receiver := t.TempDir(), newSlowReceiver(t)
	p := serve(t, dir, []string{allowLoopback}, "--addr=127.0.0.1", "--metrics-addr=127.0.0.1:0")
	watch := "http://" + p.log.find(t, `"msg":"listening for metrics","address":"([^"]*)"`)
	code, out, log := run(t, dir, nil, "schedule", "--http="+receiver.URL)
	if code != exitOK {
		t.Fatalf("%d %s", code, log)
	}
	id := decode[struct{ ID string }](t, out).ID
	<-receiver.arrived
	if a := call(t, http.MethodGet, watch+"/readyz", ""); a.status != http.StatusOK || !strings.Contains(a.body, `"durability":"strict"`) {
		t.Fatalf("before: %d %s", a.status, a.body)
	}

	p.signals <- syscall.SIGTERM
	p.log.find(t, `"msg":"(stopping)`)
	eventually(t, func() (string, bool) {
		a := call(t, http.MethodGet, watch+"/readyz", "")
		return a.body, a.status == http.StatusServiceUnavailable && strings.Contains(a.body, "shutting down")
	})
	eventually(t, func() (string, bool) {
		a, err := tryCall(t, http.MethodGet, p.url()+"/readyz", "")
		return a.body, err != nil
	})
	close(receiver.release)
	if code := p.wait(); code != exitOK {
		t.Fatalf("exit code %d\n%s", code, p.log)
	}
	_, out, _ = run(t, dir, nil, "get", "default", id)
	if got := decode[struct {
		State    string
		Attempts int
	}](t, out); got.State != "done" || got.Attempts != 1 {
		t.Errorf("the delivery that was under way: %s", out)
	}
	if _, err := os.Stat(filepath.Join(dir, "belfry.db.server")); !os.IsNotExist(err) {
		t.Errorf("the control file is left: %v", err)
	}
}

// shown is a timer as GET shows it.
type shown struct {
	Data struct {
		Status     string
		ExecuteAt  time.Time `json:"execute_at"`
		ExecutedAt time.Time `json:"executed_at"`
	}
}

func TestHostsThatDoNotAnswerDelayNoOtherTimer(t *testing.T) {
	t.Parallel()
	p := serve(t, t.TempDir(), []string{"BELFRY_GRACE=0s"}, "--dev", "--store=memory:")
	var batch []string
	for range 2 {
		silent, err := net.Listen("tcp", "127.0.0.1:0") // the system takes the requests, nobody answers
		if err != nil {
			t.Fatal(err)
		}
		defer silent.Close()
		for range 200 {
			batch = append(batch, `{"delay":"0s","callback":{"type":"http","url":"http://`+silent.Addr().String()+`"}}`)
		}
	}
	if a := call(t, http.MethodPost, p.url()+"/timers/batch", `{"timers":[`+strings.Join(batch, ",")+`]}`); a.status != http.StatusCreated {
		t.Fatalf("%d %s", a.status, a.body)
	}
	eventually(t, func() (string, bool) { // as many as may be are under way
		a := call(t, http.MethodGet, p.url()+"/timers?status=executing&limit=1", "")
		return a.body, decode[struct{ Data struct{ Total int } }](t, a.body).Data.Total >= 64
	})
	for range 3 {
		a := call(t, http.MethodPost, p.url()+"/timers", `{"delay":"500ms","callback":{"type":"http","url":"`+p.url()+`/_sink/fast"}}`)
		id := decode[struct{ Data struct{ ID string } }](t, a.body).Data.ID
		var got shown
		eventually(t, func() (string, bool) {
			a := call(t, http.MethodGet, p.url()+"/timers/"+id, "")
			got = decode[shown](t, a.body)
			return a.body, got.Data.Status == "completed"
		})
		if late := got.Data.ExecutedAt.Sub(got.Data.ExecuteAt); late > 2*time.Second {
			t.Errorf("a timer to a host that answers was %v late", late)
		}
	}
}

func TestTheServerGoesOnAcceptingForTheDrainDelay(t *testing.T) {
	t.Parallel()
	p := serve(t, t.TempDir(), nil, "--store=memory:", "--addr=127.0.0.1", "--drain-delay=1h")
	p.signals <- syscall.SIGTERM
	eventually(t, func() (string, bool) {
		a := call(t, http.MethodGet, p.url()+"/readyz", "")
		return a.body, a.status == http.StatusServiceUnavailable
	})
	a := call(t, http.MethodPost, p.url()+"/timers", `{"delay":"1h","callback":{"type":"http","url":"https://example.com"}}`)
	if a.status != http.StatusCreated {
		t.Errorf("%d %s", a.status, a.body)
	}
	p.signals <- syscall.SIGTERM
	if code := p.wait(); code != exitFailure {
		t.Errorf("a second signal: exit code %d", code)
	}
}

func TestASecondSignalEndsTheProgramAtOnce(t *testing.T) {
	t.Parallel()
	dir, receiver := t.TempDir(), newSlowReceiver(t)
	p := serve(t, dir, []string{allowLoopback}, "--grace=1h", "--addr=127.0.0.1", "--store=memory:")
	a := call(t, http.MethodPost, p.url()+"/api/v1/messages", `{"target":"http","address":"`+receiver.URL+`"}`)
	if a.status != http.StatusCreated {
		t.Fatalf("%d %s", a.status, a.body)
	}
	<-receiver.arrived
	defer close(receiver.release) // the delivery outlives the run, as the test's process does not end with it
	p.signals <- syscall.SIGTERM
	p.signals <- syscall.SIGTERM
	if code := p.wait(); code != exitFailure || !strings.Contains(p.log.String(), "stopped at once") {
		t.Errorf("exit code %d\n%s", code, p.log)
	}
}

func TestPrivateAddressesAreReachedOnlyWhenAllowed(t *testing.T) {
	t.Parallel()
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer receiver.Close()
	for _, tt := range []struct {
		env   []string
		state string
		says  string
	}{
		{nil, "failed", "BELFRY_EGRESS_ALLOW"},
		{[]string{allowLoopback}, "completed", ""},
		{[]string{allowLoopback, "BELFRY_EGRESS_PORTS=443"}, "failed", "BELFRY_EGRESS_PORTS"},
	} {
		p := serve(t, t.TempDir(), append(tt.env, "BELFRY_TIMERS_MIN_DELAY=0s"), "--store=memory:", "--addr=127.0.0.1")
		a := call(t, http.MethodPost, p.url()+"/timers", `{"delay":"1ms","callback":{"type":"http","url":"`+receiver.URL+`"}}`)
		id := decode[struct{ Data struct{ ID string } }](t, a.body).Data.ID
		eventually(t, func() (string, bool) {
			a := call(t, http.MethodGet, p.url()+"/timers/"+id, "")
			return a.body, strings.Contains(a.body, `"status":"`+tt.state+`"`) && strings.Contains(a.body, tt.says)
		})
	}
}

func TestDeliveriesAreSignedAndTraced(t *testing.T) {
	t.Parallel()
	arrived := make(chan http.Header, 1)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { arrived <- r.Header.Clone() }))
	defer receiver.Close()
	secrets := "BELFRY_WEBHOOK_SECRETS=whsec_" + strings.Repeat("QUFB", 8) + ",whsec_" + strings.Repeat("QkJC", 8)
	p := serve(t, t.TempDir(), []string{allowLoopback, secrets}, "--store=memory:", "--addr=127.0.0.1")
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	a := call(t, http.MethodPost, p.url()+"/api/v1/messages", `{"target":"http","address":"`+receiver.URL+`"}`,
		"traceparent", "00-"+trace+"-00f067aa0ba902b7-01", "X-Request-Id", "order-7")
	if a.status != http.StatusCreated || a.header.Get("X-Request-Id") != "order-7" {
		t.Fatalf("%d %s %v", a.status, a.body, a.header)
	}
	select {
	case h := <-arrived:
		if n := len(strings.Fields(h.Get("webhook-signature"))); n != 2 {
			t.Errorf("%d signatures: %v", n, h)
		}
		if !strings.Contains(h.Get("traceparent"), trace) {
			t.Errorf("traceparent %q is not of the caller's trace", h.Get("traceparent"))
		}
		if agent := h.Get("User-Agent"); !strings.HasPrefix(agent, "Belfry") {
			t.Errorf("User-Agent %q", agent)
		}
	case <-time.After(patience):
		t.Fatal("nothing arrived")
	}
}

func TestTracesAreExportedWhereAnEndpointIsSet(t *testing.T) {
	t.Parallel()
	exported := make(chan *http.Request, 100)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { exported <- r }))
	defer collector.Close()
	p := serve(t, t.TempDir(), []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + collector.URL, "OTEL_EXPORTER_OTLP_HEADERS=x-tenant=a%20b"},
		"--store=memory:", "--addr=127.0.0.1")
	call(t, http.MethodGet, p.url()+"/timers", "")
	p.signals <- syscall.SIGTERM
	if code := p.wait(); code != exitOK {
		t.Fatalf("exit code %d\n%s", code, p.log)
	}
	select {
	case r := <-exported:
		if r.URL.Path != "/v1/traces" || r.Header.Get("X-Tenant") != "a b" {
			t.Errorf("%s %v", r.URL, r.Header)
		}
	default:
		t.Error("nothing was exported before the end")
	}
}

func TestAStoreThatCannotBeOpenedEndsTheProgram(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{"text.db": strings.Repeat("this is no database. ", 1000)})
	for store, says := range map[string]string{
		"sqlite:nowhere/belfry.db": "no such file or directory",
		"sqlite:text.db":           "text.db",
		"sqlite:.":                 "open",
	} {
		code, _, log := run(t, dir, []string{"API_KEY=" + apiKey}, "serve", "--port=0", "--store="+store)
		if code != exitFailure || !strings.Contains(log, says) {
			t.Errorf("%s: %d %s", store, code, log)
		}
	}
}

func TestAnUnreachableNATSServerIsNoReasonNotToStart(t *testing.T) {
	t.Parallel()
	p := serve(t, t.TempDir(), []string{"NATS_URL=nats://127.0.0.1:1"}, "--store=memory:", "--addr=127.0.0.1")
	if a := call(t, http.MethodGet, p.url()+"/readyz", ""); a.status != http.StatusOK {
		t.Errorf("%d %s", a.status, a.body)
	}
	a := call(t, http.MethodPost, p.url()+"/timers", `{"delay":"1h","callback":{"type":"nats","topic":"a.b"}}`)
	if a.status != http.StatusCreated {
		t.Errorf("a NATS timer: %d %s", a.status, a.body)
	}
}

func TestNATSTimersAreRefusedWhereNoServerIsConfigured(t *testing.T) {
	t.Parallel()
	p := serve(t, t.TempDir(), nil, "--store=memory:", "--addr=127.0.0.1")
	a := call(t, http.MethodPost, p.url()+"/timers", `{"delay":"1h","callback":{"type":"nats","topic":"a.b"}}`)
	if a.status != http.StatusBadRequest || !strings.Contains(a.body, "NATS_URL") {
		t.Errorf("%d %s", a.status, a.body)
	}
}

func TestNoSecretIsLogged(t *testing.T) {
	t.Parallel()
	canary := "canary-" + strings.Repeat("s", 40)
	dir := t.TempDir()
	p := serve(t, dir, []string{
		allowLoopback, "BELFRY_LOG_LEVEL=trace", "BELFRY_API_KEYS=ops:" + canary, "NATS_URL=nats://user:" + canary + "@127.0.0.1:1",
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_HEADERS=authorization=" + canary,
	}, "--addr=127.0.0.1")
	call(t, http.MethodPost, p.url()+"/timers?token="+canary, `{"delay":"1ms","callback":{"type":"http","url":"http://u:`+canary+`@127.0.0.1:1/?q=`+canary+`","headers":{"X":"`+canary+`"},"payload":"`+canary+`"},"metadata":"`+canary+`"}`,
		"X-API-Key", canary)
	run(t, dir, nil, "schedule", "--http=http://u:"+canary+"@127.0.0.1:1/?q="+canary, "-d", canary, "-H", "X: "+canary, "--attempts=1")
	eventually(t, func() (string, bool) {
		a := call(t, http.MethodGet, p.url()+"/api/v1/messages?state=dead", "")
		return a.body, strings.Contains(a.body, `"total":1`)
	})
	for name, text := range map[string]string{
		"log": p.log.String(), "metrics": call(t, http.MethodGet, p.url()+"/metrics", "").body, "output": p.out.String(),
	} {
		if strings.Contains(text, canary) {
			t.Errorf("the %s contains a secret:\n%s", name, text)
		}
	}
	if !strings.Contains(p.log.String(), `"msg":"request"`) {
		t.Errorf("nothing was logged at level trace:\n%s", p.log)
	}
}
