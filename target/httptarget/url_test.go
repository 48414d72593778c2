package httptarget

import (
	"bufio"
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/belfryhq/belfry/target"
)

func TestURLsThatCanBeDeliveredToAreAccepted(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		"http://example.com", "https://example.com/", "HTTPS://EXAMPLE.COM/hook", "http://example.com:8080/a/b?c=d&e=%20f",
		"http://user:pass@example.com/", "http://user@example.com/", "http://127.0.0.1:3000/x", "http://[::1]:80/", "http://localhost",
		"https://hooks.example.com/services/T000/B000/XXX", "http://bücher.example/", "http://example.com/ü?q=ü", "http://example.com:", "http://example.com?q",
		"http://a_b.example/", "http://10.0.0.1/private", "http://example.com/a%23b", "http://" + strings.Repeat("a", MaxURL-7),
	} {
		if err := CheckURL(raw); err != nil {
			t.Errorf("%s: %v", raw, err)
		}
	}
}

func TestURLsThatCannotBeDeliveredToAreRefusedWithAReason(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"":                                "is empty",
		"example.com":                     "not absolute",
		"example.com/hook":                "not absolute",
		"/hook":                           "not absolute",
		"//example.com/":                  "not absolute",
		"ftp://example.com/":              `the scheme is "ftp"`,
		"file:///etc/passwd":              `the scheme is "file"`,
		"gopher://127.0.0.1:6379/_x":      `the scheme is "gopher"`,
		"javascript:alert(1)":             "not absolute",
		"http:example.com":                "not absolute",
		"http://":                         "has no host",
		"http:///path":                    "has no host",
		"http://:80/":                     "has no host",
		"http://user@/":                   "has no host",
		"http://example.com/#top":         "has a fragment",
		"http://example.com/#":            "has a fragment",
		"http://example.com/a b":          "byte 20 is the character U+0020",
		" http://example.com/":            "byte 0 is the character U+0020",
		"http://example.com/\r\nX: y":     "byte 19 is the character U+000D",
		"http://example.com/\x00":         "U+0000",
		"http://example.com/\x7f":         "U+007F",
		"http://example.com/\u0085":       "U+0085",
		"http://example.com/\u00a0":       "U+00A0",
		"http://example.com/\u2028":       "U+2028",
		"http://example.com/\xff":         "byte 19 is not UTF-8",
		"http://example.com:0/":           "port is out of range",
		"http://example.com:65536/":       "port is out of range",
		"http://example.com:http/":        "cannot be read",
		"http://[::1/":                    "cannot be read",
		"http://example.com/%zz":          "cannot be read",
		"http://exa<mple.com/":            "neither a name nor an address",
		"http://[::g]/":                   "cannot be read",
		"http://exam$ple.com/":            "neither a name",
		"http://\u00e4\u200d.example/":    "neither a name",
		strings.Repeat("http://a/", 1000): "has 9000 bytes; at most 8192",
	} {
		if err := CheckURL(raw); err == nil || !strings.HasPrefix(err.Error(), "url: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: the error is %v, want %q in it", raw, err, want)
		}
	}
}

func TestErrorsOfURLsTellNoSecret(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		"http://canary:pa/ss@example.com/", "http://canary:1234567/ss@example.com/", "canary:canary@example.com/", "canary@example.com",
		"http://u:p@example.com:canary/", "http://canary%zz@example.com/", "http://u:canary@[::1/", "http://example.com/?t=canary%zz#", "http://canary\u200d/x@h/",
		"http://u:canary@example.com:99999/",
	} {
		if err := CheckURL(raw); err == nil || strings.Contains(err.Error(), "canary") || strings.Contains(err.Error(), "pa") && strings.Contains(err.Error(), "ss@") ||
			strings.Contains(err.Error(), "12345") {
			t.Errorf("%q: the error is %v", raw, err)
		}
	}
}

func TestALaneIsAPlaceInOneSpelling(t *testing.T) {
	t.Parallel()
	tgt, err := New(Settings{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tgt.Close() })
	for raw, want := range map[string]string{
		"http://example.com/a?b":                 "http://example.com:80",
		"HTTP://Example.COM:80/other":            "http://example.com:80",
		"http://user:pass@example.com./":         "http://example.com:80",
		"http://example.com:":                    "http://example.com:80",
		"https://example.com":                    "https://example.com:443",
		"https://example.com:8443/x":             "https://example.com:8443",
		"http://[::1]:3000/":                     "http://[::1]:3000",
		"http://b\u00fccher.example/":            "http://xn--bcher-kva.example:80",
		"http://BU\u0308CHER.example/":           "http://xn--bcher-kva.example:80",
		"http://\u2460\u2461\u2466.\u24ea.0.1/x": "http://127.0.0.1:80",
		"not a URL":                              "invalid",
	} {
		if got := tgt.Lane(target.Delivery{Address: raw}); got != want {
			t.Errorf("%s: %q, want %q", raw, got, want)
		}
	}
}

func FuzzURL(f *testing.F) {
	for _, raw := range []string{"http://example.com/a?b=c", "https://u:p@[::1]:8443/%20", "http://①.example/", "http://a/\r\n", "http:a", "//a", "http://a:99999/#x"} {
		f.Add(raw)
	}
	tgt, err := New(Settings{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		if CheckURL(raw) != nil {
			return
		}
		req, err := tgt.request(context.Background(), &target.Delivery{Address: raw})
		if err != nil {
			t.Fatalf("%q is accepted but cannot be requested: %v", raw, err)
		}
		var wire strings.Builder
		if err := req.Write(&wire); err != nil {
			t.Fatalf("%q is accepted but cannot be written: %v", raw, err)
		}
		back, err := http.ReadRequest(bufio.NewReader(strings.NewReader(wire.String())))
		if err != nil {
			t.Fatalf("%q is written as %q, which is no request: %v", raw, wire.String(), err)
		}
		known := []string{"User-Agent", "Content-Length", "Content-Type", "Authorization", "Belfry-Attempt", "Belfry-Fence"}
		for name := range back.Header {
			if !slices.Contains(known, name) {
				t.Fatalf("%q brings the header %q", raw, name)
			}
		}
		if back.Host == "" || strings.ContainsAny(laneOf(req.URL), "\r\n @?") {
			t.Fatalf("%q is written as %q, lane %q", raw, wire.String(), laneOf(req.URL))
		}
	})
}
