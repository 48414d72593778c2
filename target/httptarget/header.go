package httptarget

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// What headers may be in number and in bytes of names and values.
const (
	MaxHeaders     = 32
	MaxHeaderBytes = 8 << 10
)

// The headers that tell a receiver which attempt it sees.
const (
	headerAttempt = "Belfry-Attempt"
	headerFence   = "Belfry-Fence"
)

// reserved are headers that a message may not bring, by their canonical names, and why.
var reserved = map[string]string{
	"Host":              "it comes from the URL",
	"Content-Length":    "it comes from the payload",
	"Transfer-Encoding": "it belongs to the connection",
	"Connection":        "it belongs to the connection",
	"Keep-Alive":        "it belongs to the connection",
	"Te":                "it belongs to the connection",
	"Trailer":           "it belongs to the connection",
	"Upgrade":           "it belongs to the connection",
	"Http2-Settings":    "it belongs to the connection",
	headerAttempt:       "it is set with every request",
	headerFence:         "it is set with every request",
}

// reservedPrefixes are beginnings of such headers.
var reservedPrefixes = map[string]string{
	"Proxy-":   "it belongs to the connection",
	"Webhook-": "it belongs to the signature",
}

// CheckHeaders returns nil if a message may bring the headers, and otherwise an error that says which may not, why, and
// what to do. It tells no value.
func CheckHeaders(headers map[string]string) error {
	if len(headers) > MaxHeaders {
		return fmt.Errorf("headers: there are %d; at most %d are allowed", len(headers), MaxHeaders)
	}
	size := 0
	seen := make(map[string]string, len(headers))
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		if err := checkHeader(name, headers[name]); err != nil {
			return err
		}
		key := http.CanonicalHeaderKey(name)
		if other, ok := seen[key]; ok {
			return fmt.Errorf("headers: %q and %q are the same header; give it once", other, name)
		}
		seen[key] = name
		size += len(name) + len(headers[name])
	}
	if size > MaxHeaderBytes {
		return fmt.Errorf("headers: they have %d bytes; at most %d are allowed", size, MaxHeaderBytes)
	}
	return nil
}

// checkHeader returns nil if a message may bring the header.
func checkHeader(name, value string) error {
	if !httpguts.ValidHeaderFieldName(name) {
		return fmt.Errorf("header %q: this is no header name; use letters, digits and hyphens", clip(name))
	}
	if why := reservation(http.CanonicalHeaderKey(name)); why != "" {
		return fmt.Errorf("header %q: %s; leave it out", clip(name), why)
	}
	if at := badByte(value); at >= 0 {
		return fmt.Errorf("header %q: byte %d of the value is not printable ASCII; encode it", clip(name), at)
	}
	return nil
}

// reservation returns why a message may not bring the header; empty: it may.
func reservation(canonical string) string {
	if why, ok := reserved[canonical]; ok {
		return why
	}
	for prefix, why := range reservedPrefixes {
		if strings.HasPrefix(canonical, prefix) {
			return why
		}
	}
	return ""
}

// badByte returns where the first byte is that is not printable ASCII, or -1.
func badByte(s string) int {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return i
		}
	}
	return -1
}

// CheckMethod returns nil if requests can be made with the method, which is case-sensitive, and otherwise an error that
// says what is wrong and what to do.
func CheckMethod(method string) error {
	const remedy = "give one in capitals such as POST"
	switch {
	case method == "":
		return errors.New("method: is empty; " + remedy)
	case len(method) > 32 || !httpguts.ValidHeaderFieldName(method) || method != strings.ToUpper(method):
		return fmt.Errorf("method: %q is none; %s", clip(method), remedy)
	case method == http.MethodConnect:
		return fmt.Errorf("method: %s makes a tunnel, not a request; %s", method, remedy)
	}
	return nil
}
