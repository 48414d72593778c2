package httptarget_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/belfryhq/belfry/target"
	"github.com/belfryhq/belfry/target/httptarget"
	"github.com/belfryhq/belfry/target/targettest"
)

func TestTargetKeepsTheLaws(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{"HTTP/1.1", "HTTP/2"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			targettest.Run(t, targettest.Harness{
				New: func(t testing.TB) (target.Target, targettest.Destination) {
					d := newDestination(t, protocol == "HTTP/2")
					s := httptarget.Settings{Allow: loopback}
					if d.server.TLS != nil {
						s.RootCAs = roots(d.server)
					}
					return newTarget(t, s), d
				},
				Secrets: func(d *target.Delivery, text string) {
					u, err := url.Parse(d.Address)
					if err != nil {
						t.Error(err)
					}
					u.User = url.UserPassword(text, text)
					u.RawQuery = "token=" + text
					d.Address = u.String()
				},
			})
		})
	}
}

// loopback is what tests must allow to reach their servers.
var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32"), netip.MustParsePrefix("::1/128")}

// newTarget returns a target that is closed with the test.
func newTarget(t testing.TB, s httptarget.Settings) *httptarget.Target {
	t.Helper()
	tgt, err := httptarget.New(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tgt.Close() })
	return tgt
}

// nowhere is a place at which nothing listens.
const nowhere = "http://127.0.0.1:1/"

// destination is an HTTP server with all answers.
type destination struct {
	targettest.Recorder
	server *httptest.Server
	mu     sync.Mutex
	answer targettest.Answer
}

func newDestination(t testing.TB, http2 bool) *destination {
	d := &destination{}
	d.server = httptest.NewUnstartedServer(d)
	if http2 {
		d.server.EnableHTTP2 = true
		d.server.StartTLS()
	} else {
		d.server.Start()
	}
	t.Cleanup(d.server.Close)
	return d
}

func (d *destination) Delivery() target.Delivery {
	if d.current().Kind == targettest.Unreachable {
		return target.Delivery{Address: nowhere}
	}
	return target.Delivery{Address: d.server.URL + "/hook", Params: map[string]string{"method": "POST"}}
}

func (d *destination) Answer(a targettest.Answer) bool {
	http2 := d.server.EnableHTTP2
	if a.Kind == targettest.Refuse || http2 && (a.Kind == targettest.Echo || a.Status == http.StatusSwitchingProtocols) {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.answer = a
	return true
}

func (d *destination) current() targettest.Answer {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.answer
}

func (d *destination) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := d.current()
	if a.Kind == targettest.Fail { // before the body has come
		http.Error(w, string(a.Body), http.StatusInternalServerError)
		return
	}
	dump, err := httputil.DumpRequest(r, true)
	if err != nil {
		return
	}
	payload, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	d.Record(arrival(r, payload))
	switch a.Kind {
	case targettest.Cut:
		panic(http.ErrAbortHandler)
	case targettest.Echo:
		echo(w, dump)
	case targettest.Hang:
		<-r.Context().Done()
	case targettest.Status:
		if a.RetryAfter != "" {
			w.Header().Set("Retry-After", a.RetryAfter)
		}
		w.WriteHeader(a.Status)
		_, _ = w.Write(a.Body)
	}
}

// arrival returns a request as the suite knows it.
func arrival(r *http.Request, payload []byte) targettest.Arrival {
	headers := make(map[string]string, len(r.Header))
	for name, values := range r.Header {
		headers[name] = strings.Join(values, ", ")
	}
	return targettest.Arrival{Payload: payload, ContentType: r.Header.Get("Content-Type"), Headers: headers}
}

// echo sends the request back in place of an answer.
func echo(w http.ResponseWriter, dump []byte) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	_, _ = conn.Write(dump)
}
