package httptarget

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/belfryhq/belfry/target"
)

func TestHeadersThatMayBeBroughtAreAccepted(t *testing.T) {
	t.Parallel()
	many := make(map[string]string)
	for i := range MaxHeaders {
		many["X-"+strconv.Itoa(i)] = "v"
	}
	for name, headers := range map[string]map[string]string{
		"none":                        nil,
		"ordinary ones":               {"Authorization": "Bearer t", "x-custom": "a b", "X_Under.score!": "1", "User-Agent": "mine", "Content-Type": "text/csv", "traceparent": "00-a-b-01"},
		"an empty one":                {"X-Empty": ""},
		"as many as may be":           many,
		"as long as may be":           {"X": strings.Repeat("v", MaxHeaderBytes-1)},
		"names that only begin alike": {"Hosts": "1", "Connections": "1", "Webhooks": "1", "Proxying": "1", "Belfry-Key": "k", "Expect": "100-continue"},
	} {
		if err := CheckHeaders(headers); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestHeadersThatMayNotBeBroughtAreRefused(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"Host", "host", "HOST", "Content-Length", "content-length", "Transfer-Encoding", "Connection", "Keep-Alive", "TE", "te", "Trailer", "Upgrade", "HTTP2-Settings",
		"Proxy-Authorization", "Proxy-Connection", "proxy-x", "Webhook-Id", "webhook-signature", "WEBHOOK-anything", "Belfry-Attempt", "belfry-fence",
	} {
		refusedHeader(t, map[string]string{name: "canary"}, "leave it out")
	}
	for _, name := range []string{"", " ", "X Y", "X:Y", "X\r\n", "X\x00", "Ü", "X\xff", "(x)", "a/b", `"x"`, "\tX"} {
		refusedHeader(t, map[string]string{name: "canary"}, "no header name")
	}
	for _, value := range []string{"a\r\nX: y", "a\nb", "a\rb", "a\x00b", "\x7f", "ü", "\xff", "a\tb"} {
		refusedHeader(t, map[string]string{"X-Law": "canary" + value}, "of the value is not printable ASCII")
	}
}

func TestHeadersAreLimitedTogether(t *testing.T) {
	t.Parallel()
	many := make(map[string]string)
	for i := range MaxHeaders + 1 {
		many["X-"+strconv.Itoa(i)] = "v"
	}
	refusedHeader(t, many, "there are 33; at most 32")
	refusedHeader(t, map[string]string{"X": strings.Repeat("v", MaxHeaderBytes)}, "have 8193 bytes; at most 8192")
	refusedHeader(t, map[string]string{"X-A": "1", "x-a": "2"}, `"X-A" and "x-a" are the same header`)
}

func refusedHeader(t *testing.T, headers map[string]string, want string) {
	t.Helper()
	err := CheckHeaders(headers)
	if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "canary") {
		t.Errorf("%q: the error is %v, want %q in it", headers, err, want)
	}
}

func TestMethods(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "PURGE", "M-SEARCH"} {
		if err := CheckMethod(method); err != nil {
			t.Errorf("%s: %v", method, err)
		}
	}
	for _, method := range []string{"", "post", "Post", "P OST", "POST\r\n", "GÉT", "CONNECT", "A(B)", strings.Repeat("A", 33)} {
		if err := CheckMethod(method); err == nil || !strings.Contains(err.Error(), "POST") {
			t.Errorf("%q: the error is %v, want one with a remedy", method, err)
		}
	}
}

func TestCheckNamesTheFieldThatIsWrong(t *testing.T) {
	t.Parallel()
	tgt, err := New(Settings{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tgt.Close() })
	const good = "https://example.com/"
	for want, d := range map[string]target.Delivery{
		"url: ":                   {Address: "x"},
		`header "Host": `:         {Address: good, Headers: map[string]string{"Host": "x"}},
		`header "Content-Type": `: {Address: good, ContentType: "a\nb"},
		"method: ":                {Address: good, Params: map[string]string{"method": "get"}},
		`param "metod": `:         {Address: good, Params: map[string]string{"metod": "GET"}},
		"timeout: ":               {Address: good, Timeout: -time.Second},
	} {
		if err := tgt.Check(d); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("the error is %v, want %q first", err, want)
		}
	}
	if err := tgt.Check(target.Delivery{Address: good, Params: map[string]string{"method": "PUT"}}); err != nil {
		t.Error(err)
	}
}

func FuzzHeaders(f *testing.F) {
	f.Add("X-Law", "value")
	f.Add("Connection", "close, Webhook-Signature")
	f.Add("X\r\nY", "a\r\nb")
	f.Fuzz(func(t *testing.T, name, value string) {
		if CheckHeaders(map[string]string{name: value}) != nil {
			return
		}
		if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) || reservation(http.CanonicalHeaderKey(name)) != "" {
			t.Errorf("%q: %q is accepted", name, value)
		}
	})
}

func FuzzRetryAfter(f *testing.F) {
	for _, value := range []string{"120", "-1", "9300000000", "Fri, 31 Dec 1999 23:59:59 GMT", "soon"} {
		f.Add(value, "Fri, 31 Dec 1999 23:59:00 GMT")
	}
	f.Fuzz(func(t *testing.T, value, date string) {
		h := http.Header{"Retry-After": {value}, "Date": {date}}
		if after, ok := retryAfter(h, time.Now()); after < 0 || after > maxRetryAfter || !ok && after != 0 {
			t.Errorf("%q at %q asks for %v", value, date, after)
		}
	})
}

func FuzzWebhookID(f *testing.F) {
	f.Add("0198c0de-0000-7000-8000-000000000001", "a.b")
	f.Add("a b", "a%20b")
	f.Fuzz(func(t *testing.T, a, b string) {
		x, y := webhookID(a), webhookID(b)
		if (x == y) != (a == b) {
			t.Errorf("%q and %q are told as %q and %q", a, b, x, y)
		}
		if badByte(x) >= 0 || strings.ContainsAny(x, ". ") {
			t.Errorf("%q is told as %q", a, x)
		}
	})
}
