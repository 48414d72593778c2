package httptarget_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belfryhq/belfry/target"
	"github.com/belfryhq/belfry/target/httptarget"
)

// raw is a server that reads a request and leaves the rest to answer, which may write until the client is gone.
func raw(t *testing.T, answer func(conn net.Conn)) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var served sync.WaitGroup
	served.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			served.Go(func() {
				defer conn.Close()
				if r, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
					_, _ = io.Copy(io.Discard, r.Body)
					answer(conn)
				}
			})
		}
	})
	t.Cleanup(func() { l.Close(); served.Wait() })
	return "http://" + l.Addr().String()
}

// drip writes a text byte by byte, slowly, for ever, and reports how many bytes it wrote before the client was gone.
func drip(conn net.Conn, text string) (written int) {
	for {
		for i := range len(text) {
			if _, err := conn.Write([]byte{text[i]}); err != nil {
				return written
			}
			written++
			time.Sleep(5 * time.Millisecond)
		}
	}
}

// deliver makes a delivery that is observed.
func deliver(t *testing.T, tgt *httptarget.Target, url string, timeout time.Duration) (*target.Observation, error) {
	t.Helper()
	o := &target.Observation{}
	err := tgt.Deliver(t.Context(), target.Delivery{Address: url, Payload: []byte("x"), Timeout: timeout, Observed: o})
	return o, err
}

// failed fails the test unless the delivery is a failed attempt with the text.
func failed(t *testing.T, err error, want string) {
	t.Helper()
	if verdict, _, asked := target.Judge(err); verdict != target.Retry || asked || err.Error() != want {
		t.Errorf("the error is %v (verdict %d), want %q", err, verdict, want)
	}
}

func TestASlowAnswerEndsAtTheTimeout(t *testing.T) {
	t.Parallel()
	tgt := newTarget(t, httptarget.Settings{Allow: loopback})
	for name, url := range map[string]string{
		"a status line byte by byte": raw(t, func(c net.Conn) { drip(c, "HTTP/1.1 200 OK\r\nX: y\r\n") }),
		"headers without end":        raw(t, func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n"); drip(c, "X: y\r\n") }),
		"hints without end":          raw(t, func(c net.Conn) { drip(c, "HTTP/1.1 103 Early Hints\r\n\r\n") }),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := deliver(t, tgt, url, 200*time.Millisecond)
			failed(t, err, "timeout after 200ms")
		})
	}
}

func TestAnAnswerWhoseStatusHasComeIsJudgedByItHoweverSlowTheRest(t *testing.T) {
	t.Parallel()
	tgt := newTarget(t, httptarget.Settings{Allow: loopback})
	for status, want := range map[string]string{"200 OK": "", "500 Busy": "HTTP 500"} {
		url := raw(t, func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 "+status+"\r\nContent-Length: 1000000\r\n\r\n")
			drip(c, "slow ")
		})
		start := time.Now()
		o, err := deliver(t, tgt, url, 200*time.Millisecond)
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("%s: it took %v", status, took)
		}
		if want == "" && err != nil || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%s: the error is %v, want %q", status, err, want)
		}
		if !strings.HasPrefix(string(o.Response), "slow") {
			t.Errorf("%s: the observed answer is %q", status, o.Response)
		}
	}
}

func TestHeadersThatDoNotEndAreCutOff(t *testing.T) {
	t.Parallel()
	written := make(chan int, 1)
	url := raw(t, func(c net.Conn) {
		n, _ := io.WriteString(c, "HTTP/1.1 200 OK\r\n")
		line := []byte("X-Filler: " + strings.Repeat("y", 1000) + "\r\n")
		for {
			m, err := c.Write(line)
			n += m
			if err != nil {
				written <- n
				return
			}
		}
	})
	_, err := deliver(t, newTarget(t, httptarget.Settings{Allow: loopback}), url, 0)
	failed(t, err, "the answer's headers exceed 64 KiB")
	if n := <-written; n > 8<<20 {
		t.Errorf("the server could write %d bytes", n)
	}
}

func TestOnlyTheBeginningOfAHugeAnswerIsRead(t *testing.T) {
	t.Parallel()
	for name, length := range map[string]string{"of known length": "Content-Length: 1000000000\r\n", "of unknown length": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			written := make(chan int64, 1)
			url := raw(t, func(c net.Conn) {
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n"+length+"\r\n")
				n, _ := io.Copy(c, io.LimitReader(zeros{}, 1_000_000_000))
				written <- n
			})
			o, err := deliver(t, newTarget(t, httptarget.Settings{Allow: loopback, MaxResponse: 1000}), url, 0)
			if err != nil || len(o.Response) != 1000 {
				t.Errorf("error %v, %d bytes observed, want none and 1000", err, len(o.Response))
			}
			if n := <-written; n > 64<<20 {
				t.Errorf("the server could write %d bytes", n)
			}
		})
	}
}

// zeros reads as zeros without end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestAnAnswerIsNotDecompressed(t *testing.T) {
	t.Parallel()
	var bomb bytes.Buffer
	w := gzip.NewWriter(&bomb)
	_, _ = io.Copy(w, io.LimitReader(zeros{}, 5_000_000))
	w.Close()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(bomb.Bytes())
	}))
	t.Cleanup(s.Close)
	o, err := deliver(t, newTarget(t, httptarget.Settings{Allow: loopback, MaxResponse: 1 << 20}), s.URL, 0)
	if err != nil || !bytes.Equal(o.Response, bomb.Bytes()) {
		t.Errorf("error %v, %d bytes observed, want the %d that were sent", err, len(o.Response), bomb.Len())
	}
}

func TestWhatGoesWrongIsToldInPlainWords(t *testing.T) {
	t.Parallel()
	tgt := newTarget(t, httptarget.Settings{Allow: loopback})
	for name, tt := range map[string]struct{ url, want string }{
		"nothing listens":       {nowhere, "connection refused"},
		"closed without answer": {raw(t, func(net.Conn) {}), "connection closed without an answer"},
		"closed in the headers": {raw(t, func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nX: ") }), "connection closed without an answer"},
		"reset":                 {raw(t, func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0) }), "connection reset"},
		"another protocol":      {raw(t, func(c net.Conn) { _, _ = io.WriteString(c, "220 smtp.example.com ESMTP\r\n") }), "the answer is not HTTP"},
		"a status that is none": {raw(t, func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 abc\r\n\r\n") }), "the answer is not HTTP"},
		"a malformed header":    {raw(t, func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nno colon\r\n\r\n") }), "the answer is not HTTP"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := deliver(t, tgt, tt.url, 2*time.Second)
			failed(t, err, tt.want)
		})
	}
}

func TestConnectionsAreUsedAgain(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]http.HandlerFunc{
		"after an empty answer":             func(http.ResponseWriter, *http.Request) {},
		"after an answer that was observed": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 1000)) },
		"after an answer longer than that":  func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 60_000)) },
		"after a failure":                   func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", 500) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var connections atomic.Int32
			s := httptest.NewUnstartedServer(answer)
			s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
				if state == http.StateNew {
					connections.Add(1)
				}
			}
			s.Start()
			t.Cleanup(s.Close)
			tgt := newTarget(t, httptarget.Settings{Allow: loopback})
			for range 20 {
				_, _ = deliver(t, tgt, s.URL, 0)
			}
			if n := connections.Load(); n != 1 {
				t.Errorf("20 deliveries made %d connections", n)
			}
		})
	}
}

func TestInformationBeforeTheAnswerIsNoVerdict(t *testing.T) {
	t.Parallel()
	url := raw(t, func(c net.Conn) {
		_, _ = io.WriteString(c, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n")
	})
	o, err := deliver(t, newTarget(t, httptarget.Settings{Allow: loopback}), url, 0)
	if err != nil || o.Status != 204 {
		t.Errorf("error %v, status %d", err, o.Status)
	}
}

func TestASwitchOfProtocolsIsAFailureAndIsNotRead(t *testing.T) {
	t.Parallel()
	url := raw(t, func(c net.Conn) {
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n")
		_, _ = io.Copy(io.Discard, c) // until the client is gone
	})
	start := time.Now()
	_, err := deliver(t, newTarget(t, httptarget.Settings{Allow: loopback}), url, 20*time.Second)
	failed(t, err, "HTTP 101")
	if took := time.Since(start); took > 4*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestAServerThatAnswersBeforeItHasReadAHugePayloadIsHeard(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "too large", http.StatusRequestEntityTooLarge)
	}))
	t.Cleanup(s.Close)
	tgt := newTarget(t, httptarget.Settings{Allow: loopback})
	err := tgt.Deliver(t.Context(), target.Delivery{Address: s.URL, Payload: make([]byte, 200<<10)})
	failed(t, err, "HTTP 413")
}

func TestTheDelayAskedForIsReadByTheServersClock(t *testing.T) {
	t.Parallel()
	date := func(at time.Time) string { return at.UTC().Format(http.TimeFormat) }
	server := time.Now().Add(-3 * time.Hour) // its clock is slow
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", date(server))
		w.Header().Set("Retry-After", date(server.Add(time.Minute)))
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	t.Cleanup(s.Close)
	_, err := deliver(t, newTarget(t, httptarget.Settings{Allow: loopback}), s.URL, 0)
	if verdict, after, asked := target.Judge(err); verdict != target.Retry || !asked || after != time.Minute {
		t.Errorf("%v: verdict %d, delay %v (%t), want a minute", err, verdict, after, asked)
	}
}

func TestADelayOfAgesIsCapped(t *testing.T) {
	t.Parallel()
	for _, value := range []string{strconv.FormatUint(1<<62, 10), "Fri, 31 Dec 9999 23:59:59 GMT"} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", value)
			w.WriteHeader(http.StatusServiceUnavailable)
		}))
		t.Cleanup(s.Close)
		_, err := deliver(t, newTarget(t, httptarget.Settings{Allow: loopback}), s.URL, 0)
		if _, after, _ := target.Judge(err); after != 365*24*time.Hour {
			t.Errorf("%s: the delay is %v", value, after)
		}
	}
}
