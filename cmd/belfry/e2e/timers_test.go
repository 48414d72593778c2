package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestAThousandTimersOfOneMillisecondComeOnce(t *testing.T) {
	s, r := serve(t, t.TempDir()), newReceiver(t)
	const n = 1000
	at := time.Now().Add(2500 * time.Millisecond).Truncate(time.Millisecond)
	var batch strings.Builder
	for i := range n {
		if i > 0 {
			batch.WriteString(",")
		}
		batch.WriteString(r.timer(fmt.Sprint("t", i), at))
	}
	s.must(http.StatusCreated, "POST", "/timers/batch", `{"atomic":true,"timers":[`+batch.String()+`]}`)
	r.await(t, n, 30*time.Second)
	var lags []time.Duration
	for i := range n {
		times := r.times(fmt.Sprint("t", i))
		if len(times) != 1 {
			t.Errorf("timer %d came %d times", i, len(times))
		}
		lag := times[0].Sub(at)
		if lag < 0 {
			t.Errorf("timer %d was %v early", i, -lag)
		}
		lags = append(lags, lag)
	}
	slices.Sort(lags)
	t.Logf("1,000 timers of one millisecond: first %v, median %v, last %v after it", lags[0], lags[n/2], lags[n-1])
	total := s.must(http.StatusOK, "GET", "/timers?status=completed&limit=1", "").Data["total"]
	deadline := time.Now().Add(10 * time.Second)
	for total != float64(n) && time.Now().Before(deadline) {
		time.Sleep(20 * time.Millisecond) // polls what another process does
		total = s.must(http.StatusOK, "GET", "/timers?status=completed&limit=1", "").Data["total"]
	}
	if total != float64(n) {
		t.Errorf("%v of %d timers are completed", total, n)
	}
}

func TestACancelThatSaidYesNeverFires(t *testing.T) {
	s, r := serve(t, t.TempDir()), newReceiver(t)
	const n = 600
	at := time.Now().Add(2500 * time.Millisecond).Truncate(time.Millisecond)
	ids := make([]string, n)
	for i := range ids {
		a := s.must(http.StatusCreated, "POST", "/timers", r.timer(fmt.Sprint("t", i), at.Add(time.Duration(i%100)*5*time.Millisecond)))
		ids[i] = a.Data["id"].(string)
	}
	time.Sleep(time.Until(at) - 200*time.Millisecond) // the storm begins just before they fire
	var mu sync.Mutex
	canceled := map[int]time.Time{}
	var wait sync.WaitGroup
	for worker := range 8 {
		wait.Go(func() {
			for i := worker; i < n; i += 8 {
				a, err := s.call(t.Context(), "DELETE", "/timers/"+ids[i], "")
				if err != nil || a.status != http.StatusOK && a.status != http.StatusBadRequest {
					t.Errorf("cancel: %v %d %s", err, a.status, a.text)
				}
				if a.status == http.StatusOK {
					mu.Lock()
					canceled[i] = time.Now()
					mu.Unlock()
				}
			}
		})
	}
	wait.Wait()
	r.await(t, n-len(canceled), 30*time.Second)
	if got := r.distinct() + len(canceled); got != n {
		t.Errorf("%d canceled and %d fired of %d", len(canceled), r.distinct(), n)
	}
	for i := range canceled {
		if times := r.times(fmt.Sprint("t", i)); len(times) != 0 {
			t.Errorf("timer %d was canceled and fired", i)
		}
	}
	t.Logf("%d of %d timers were canceled while they fired", len(canceled), n)
}

func TestATimerCarriesItsPayloadAndHeaders(t *testing.T) {
	s := serve(t, t.TempDir())
	got := make(chan *http.Request, 1)
	body := make(chan string, 1)
	r := newReceiver(t)
	r.Config.Handler = http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		b := make([]byte, 1024)
		n, _ := q.Body.Read(b)
		got <- q
		body <- string(b[:n])
	})
	s.must(http.StatusCreated, "POST", "/timers",
		`{"delay":"50ms","callback":{"type":"http","url":"`+r.URL+`/x?a=b","headers":{"Authorization":"Bearer t"},"payload":{"b": 1,  "a":[2]}}}`)
	q := <-got
	if b := <-body; b != `{"b": 1,  "a":[2]}` {
		t.Errorf("the body is %s", b)
	}
	for name, want := range map[string]string{
		"Authorization": "Bearer t", "Content-Type": "application/json", "User-Agent": "timer-platform/0.1.0",
	} {
		if q.Header.Get(name) != want {
			t.Errorf("%s is %q, not %q", name, q.Header.Get(name), want)
		}
	}
	if q.Method != http.MethodPost || q.URL.RawQuery != "a=b" {
		t.Errorf("%s %s", q.Method, q.URL)
	}
}

func TestAddressesAndHeadersAreGuarded(t *testing.T) {
	s := serve(t, t.TempDir(), "BELFRY_EGRESS_ALLOW=")
	for name, callback := range map[string]string{
		"no scheme":        `{"type":"http","url":"example.com/x"}`,
		"another scheme":   `{"type":"http","url":"ftp://example.com/x"}`,
		"a framing header": `{"type":"http","url":"http://example.com","headers":{"Content-Length":"1"}}`,
		"the host header":  `{"type":"http","url":"http://example.com","headers":{"Host":"a"}}`,
		"a bad name":       `{"type":"http","url":"http://example.com","headers":{"a b":"1"}}`,
		"a line break":     `{"type":"http","url":"http://example.com","headers":{"A":"1\r\nB: 2"}}`,
		"no NATS":          `{"type":"nats","topic":"a.b"}`,
	} {
		if a := s.must(http.StatusBadRequest, "POST", "/timers", `{"delay":"1h","callback":`+callback+`}`); !strings.Contains(a.text, `"code":2`) {
			t.Errorf("%s: %s", name, a.text)
		}
	}
	r := newReceiver(t)
	id := s.must(http.StatusCreated, "POST", "/timers", r.timer("t1", time.Now().Add(50*time.Millisecond))).Data["id"].(string)
	deadline := time.Now().Add(10 * time.Second)
	for {
		a := s.must(http.StatusOK, "GET", "/timers/"+id, "")
		if a.Data["status"] == "failed" {
			if said, _ := a.Data["last_error"].(string); !strings.Contains(said, "BELFRY_EGRESS_ALLOW") {
				t.Errorf("last_error does not name the setting: %q", said)
			}
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the timer did not fail: %s", a.text)
		}
		time.Sleep(10 * time.Millisecond) // polls what another process does
	}
	if r.distinct() != 0 {
		t.Error("a loopback address was reached although it is not allowed")
	}
}
