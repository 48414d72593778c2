package httptarget_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/belfryhq/belfry/target"
	"github.com/belfryhq/belfry/target/httptarget"
)

func parse(t *testing.T, raw string) *url.URL {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// seen is a request as a server saw it.
type seen struct {
	*http.Request
	body string
}

// observer returns a server and what it sees.
func observer(t *testing.T) (*httptest.Server, <-chan seen) {
	t.Helper()
	requests := make(chan seen, 16)
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		requests <- seen{r, string(body)}
	}))
	t.Cleanup(s.Close)
	return s, requests
}

func TestTheRequestIsAsTheMessageSays(t *testing.T) {
	t.Parallel()
	s, requests := observer(t)
	tgt := newTarget(t, httptarget.Settings{Allow: loopback, UserAgent: "timer-platform/0.1.0"})
	tests := []struct {
		name string
		d    target.Delivery
		want func(seen) bool
	}{
		{"POST with JSON is the default", target.Delivery{Payload: []byte("{}")}, func(r seen) bool {
			return r.Method == "POST" && r.body == "{}" && r.ContentLength == 2 && r.Header.Get("Content-Type") == "application/json"
		}},
		{"an empty body has a content type and a length too", target.Delivery{}, func(r seen) bool {
			return r.body == "" && r.Header.Get("Content-Length") == "0" && r.Header.Get("Content-Type") == "application/json"
		}},
		{"the settings' user agent is sent", target.Delivery{}, func(r seen) bool { return r.Header.Get("User-Agent") == "timer-platform/0.1.0" }},
		{"the message's user agent wins", target.Delivery{Headers: map[string]string{"user-agent": "mine"}}, func(r seen) bool {
			return r.Header.Get("User-Agent") == "mine" && len(r.Header.Values("User-Agent")) == 1
		}},
		{"a header of the message replaces the content type", target.Delivery{ContentType: "text/plain", Headers: map[string]string{"content-type": "text/csv"}},
			func(r seen) bool { return strings.Join(r.Header.Values("Content-Type"), ",") == "text/csv" }},
		{"the method is a parameter", target.Delivery{Params: map[string]string{"method": "PUT"}, Payload: []byte("x")}, func(r seen) bool { return r.Method == "PUT" && r.body == "x" }},
		{"GET may have a body", target.Delivery{Params: map[string]string{"method": "GET"}, Payload: []byte("q")}, func(r seen) bool { return r.Method == "GET" && r.body == "q" }},
		{"the attempt and its fence are told", target.Delivery{Attempt: 3, Fence: 1764547200000001}, func(r seen) bool {
			return r.Header.Get("Belfry-Attempt") == "3" && r.Header.Get("Belfry-Fence") == "1764547200000001"
		}},
		{"no compression is asked for", target.Delivery{}, func(r seen) bool { return r.Header.Get("Accept-Encoding") == "" }},
		{"without a secret there is no signature", target.Delivery{ID: "m"}, func(r seen) bool { return r.Header.Get("Webhook-Signature") == "" && r.Header.Get("Webhook-Id") == "" }},
	}
	for _, tt := range tests {
		tt.d.Address = s.URL + "/hook?q=1"
		if err := tgt.Deliver(t.Context(), tt.d); err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		if r := <-requests; !tt.want(r) || r.RequestURI != "/hook?q=1" {
			t.Errorf("%s: it was %s %s %v %q", tt.name, r.Method, r.RequestURI, r.Header, r.body)
		}
	}
}

func TestUserInfoIsSentAsBasicAuthenticationUnlessTheMessageAuthenticatesItself(t *testing.T) {
	t.Parallel()
	s, requests := observer(t)
	tgt := newTarget(t, httptarget.Settings{Allow: loopback})
	u := parse(t, s.URL)
	u.User = url.UserPassword("user", "p@ss:w/rd")
	if err := tgt.Deliver(t.Context(), target.Delivery{Address: u.String()}); err != nil {
		t.Fatal(err)
	}
	if name, password, ok := (<-requests).BasicAuth(); !ok || name != "user" || password != "p@ss:w/rd" {
		t.Errorf("it arrived as %q %q", name, password)
	}
	own := target.Delivery{Address: u.String(), Headers: map[string]string{"authorization": "Bearer t"}}
	if err := tgt.Deliver(t.Context(), own); err != nil {
		t.Fatal(err)
	}
	if got := (<-requests).Header.Get("Authorization"); got != "Bearer t" {
		t.Errorf("the message's own arrived as %q", got)
	}
}

func TestTheDefaultUserAgentNamesBelfry(t *testing.T) {
	t.Parallel()
	s, requests := observer(t)
	if err := newTarget(t, httptarget.Settings{Allow: loopback}).Deliver(t.Context(), target.Delivery{Address: s.URL}); err != nil {
		t.Fatal(err)
	}
	if got := (<-requests).UserAgent(); got != "Belfry" && !strings.HasPrefix(got, "Belfry/") {
		t.Errorf("it is %q", got)
	}
}

func TestWhatWasStoredUncheckedIsRefusedForGood(t *testing.T) {
	t.Parallel()
	s, requests := observer(t)
	tgt := newTarget(t, httptarget.Settings{Allow: loopback})
	for name, d := range map[string]target.Delivery{
		"address":      {Address: "ftp://127.0.0.1/"},
		"method":       {Address: s.URL, Params: map[string]string{"method": "PO ST"}},
		"header":       {Address: s.URL, Headers: map[string]string{"Connection": "close, Webhook-Signature"}},
		"host":         {Address: s.URL, Headers: map[string]string{"host": "internal"}},
		"content type": {Address: s.URL, ContentType: "a\r\nX: y"},
	} {
		if verdict, _, _ := target.Judge(tgt.Deliver(t.Context(), d)); verdict != target.Bury {
			t.Errorf("%s: the verdict is %d", name, verdict)
		}
	}
	if n := len(requests); n != 0 {
		t.Errorf("%d requests arrived", n)
	}
}

func TestATimeoutIsToldWithItsLength(t *testing.T) {
	t.Parallel()
	hang := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(hang.Close)
	tgt := newTarget(t, httptarget.Settings{Allow: loopback, Timeout: 150 * time.Millisecond})
	for _, tt := range []struct {
		name    string
		timeout time.Duration
		want    string
	}{
		{"the settings' own", 0, "timeout after 150ms"},
		{"the message's own", 80 * time.Millisecond, "timeout after 80ms"},
		{"a longer one of the message", 200 * time.Millisecond, "timeout after 200ms"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := tgt.Deliver(t.Context(), target.Delivery{Address: hang.URL, Timeout: tt.timeout})
			if err == nil || err.Error() != tt.want || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the error is %v, want %q", err, tt.want)
			}
		})
	}
	t.Run("a deadline of the context that comes first", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithTimeout(t.Context(), 1020*time.Millisecond)
		defer cancel()
		err := tgt.Deliver(ctx, target.Delivery{Address: hang.URL, Timeout: time.Minute})
		if err == nil || err.Error() != "timeout after 1s" {
			t.Errorf("the error is %v, want a round timeout", err)
		}
	})
}

func TestATargetThatIsClosedConnectsToNothing(t *testing.T) {
	t.Parallel()
	s, _ := observer(t)
	tgt := newTarget(t, httptarget.Settings{Allow: loopback})
	tgt.Close()
	if err := tgt.Deliver(t.Context(), target.Delivery{Address: s.URL}); err == nil || err.Error() != "the target is closed" {
		t.Errorf("the error is %v", err)
	}
}
