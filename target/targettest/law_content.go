package targettest

import (
	"bytes"
	"strings"

	"github.com/belfryhq/belfry/target"
)

func contentLaws() []Law {
	return []Law{
		{"payload", "A payload arrives byte for byte", checkPayload},
		{"headers", "Headers arrive with their names and their values", checkHeaders},
		{"content type", "The content type arrives with the payload", checkContentType},
		{"line break", "A line break in a header never makes another header", checkLineBreak},
	}
}

// payloads are what payloads may be, by name.
func payloads() map[string][]byte {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	large := make([]byte, 1_000_000)
	for i := range large {
		large[i] = byte(i * 7 >> 3)
	}
	return map[string][]byte{
		"nil":               nil,
		"empty":             {},
		"a zero byte":       {0},
		"all byte values":   every,
		"not UTF-8":         {0xff, 0xfe, 0xc3, 0x28},
		"line breaks first": []byte("\r\n\r\nPUB x 1\r\n"),
		"JSON":              []byte(`{"a":[1,2,{"b":"ü"}]}`),
		"1 MB":              large,
	}
}

func checkPayload(e *env) {
	n := 0
	for name, payload := range payloads() {
		e.step("%s", name)
		e.accepted(e.delivery(payload))
		n++
		got := e.arrived(n)[n-1].Payload
		if !bytes.Equal(got, payload) {
			e.fail("%d bytes arrived, %d were sent; they differ from byte %d on", len(got), len(payload), commonPrefix(got, payload))
		}
	}
}

// commonPrefix returns how many bytes are alike at the beginning.
func commonPrefix(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

func checkHeaders(e *env) {
	var printable strings.Builder
	for c := byte('!'); c <= '~'; c++ {
		printable.WriteByte(c)
	}
	d := e.delivery([]byte("x"))
	d.Headers = map[string]string{
		"Authorization":   "Bearer t0ken",
		"X-Printable":     printable.String(),
		"X-Blanks-Inside": "a  b, c; d",
		"X-Long":          strings.Repeat("v", 4000),
		"X-Empty":         "",
		"x-lower":         "1",
		"traceparent":     "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
	}
	e.accepted(d)
	got := fold(e.arrived(1)[0].Headers)
	for name, want := range d.Headers {
		value, ok := got[strings.ToLower(name)]
		if !ok || value != want {
			e.fail("header %s arrived as %q (present: %t), want %q", name, value, ok, want)
		}
	}
}

// fold returns headers by their names in lower case.
func fold(headers map[string]string) map[string]string {
	folded := make(map[string]string, len(headers))
	for name, value := range headers {
		folded[strings.ToLower(name)] = value
	}
	return folded
}

func checkContentType(e *env) {
	for i, payload := range [][]byte{[]byte("<a/>"), nil} {
		e.step("%d bytes of payload", len(payload))
		d := e.delivery(payload)
		d.ContentType = "text/xml; charset=utf-8"
		e.accepted(d)
		if got := e.arrived(i + 1)[i].ContentType; got != d.ContentType {
			e.fail("it arrived as %q, want %q", got, d.ContentType)
		}
	}
}

func checkLineBreak(e *env) {
	const injected = "X-Injected"
	breaks := []string{"\r\n", "\n", "\r", "\r\n ", "\x00\n"}
	for _, br := range breaks {
		for part, headers := range map[string]map[string]string{
			"value": {"X-Law": "a" + br + injected + ": 1"},
			"name":  {"X-Law" + br + injected: "1"},
		} {
			e.step("%q in a %s", br, part)
			d := e.delivery([]byte("x"))
			d.Headers = headers
			e.refusedByCheck(d)
			_ = e.deliver(e.Context(), d) // may be refused; what must not happen shows at the destination
		}
	}
	e.step("afterwards")
	e.accepted(e.delivery([]byte("last")))
	e.lastArrival("last", func(a Arrival) {
		if _, ok := fold(a.Headers)[strings.ToLower(injected)]; ok {
			e.fail("a header %s arrived", injected)
		}
	})
}

// refusedByCheck fails the law if the target is a Checker that accepts the delivery.
func (e *env) refusedByCheck(d target.Delivery) {
	e.Helper()
	if c, ok := e.target.(target.Checker); ok && c.Check(d) == nil {
		e.fail("Check accepts it")
	}
}

// lastArrival waits for the delivery with the payload and shows it and all before it to look.
func (e *env) lastArrival(payload string, look func(Arrival)) {
	e.Helper()
	for n := 1; ; n++ {
		got := e.arrivals(n)
		if len(got) < n {
			e.fail("a delivery that was accepted did not arrive")
		}
		look(got[n-1])
		if string(got[n-1].Payload) == payload {
			return
		}
	}
}
