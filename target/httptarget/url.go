package httptarget

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// MaxURL is how many bytes a URL may have: signed ones with the token of a session have some thousands.
const MaxURL = 8192

// CheckURL returns nil if messages can be delivered to the URL, and otherwise an error that says what is wrong and what
// to do. The error repeats nothing of the URL but its scheme: where the user info ends is not certain in a URL that is
// wrong. Whether the host exists and may be reached
// shows only when it is.
func CheckURL(raw string) error {
	_, err := parseURL(raw)
	return err
}

// parseURL returns an absolute http or https URL with its host in ASCII, so that the name that is looked up, the one
// that a certificate is checked for and the one in the request are the same.
func parseURL(raw string) (*url.URL, error) {
	if err := checkText(raw); err != nil {
		return nil, err
	}
	u, err := url.Parse(raw)
	if err != nil { // its text would repeat the URL
		return nil, errors.New("url: cannot be read; give one like https://example.com/hook, with special characters percent-encoded")
	}
	if u.Opaque != "" || u.Scheme == "" {
		return nil, errors.New("url: is not absolute; give one like https://example.com/hook")
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("url: the scheme is %q; give http or https", clip(u.Scheme))
	}
	if u.Hostname() == "" {
		return nil, errors.New("url: has no host; give an absolute one like https://example.com/hook")
	}
	if err := checkPort(u.Port()); err != nil {
		return nil, err
	}
	host, ok := asciiHost(u.Hostname())
	if !ok {
		return nil, errors.New("url: the host is neither a name nor an address; correct it")
	}
	if host != u.Hostname() {
		u.Host = host
		if port := u.Port(); port != "" {
			u.Host += ":" + port
		}
	}
	return u, nil
}

// asciiHost returns a host as the name system knows it, and reports whether it is an address or can be a name.
func asciiHost(host string) (string, bool) {
	if strings.Contains(host, ":") {
		_, err := netip.ParseAddr(host)
		return host, err == nil
	}
	for i := range len(host) {
		if host[i] >= utf8.RuneSelf {
			mapped, err := idna.Lookup.ToASCII(host)
			return mapped, err == nil && mapped != ""
		}
		if !isNameByte(host[i]) {
			return host, false
		}
	}
	return host, true
}

func isNameByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '.' || c == '_'
}

// checkText finds what may be nowhere in a URL.
func checkText(raw string) error {
	if raw == "" {
		return errors.New("url: is empty; give one like https://example.com/hook")
	}
	if len(raw) > MaxURL {
		return fmt.Errorf("url: has %d bytes; at most %d are allowed", len(raw), MaxURL)
	}
	for i, r := range raw {
		switch {
		case r == '#':
			return errors.New("url: has a fragment, which is never sent; remove it from the # on")
		case unicode.IsControl(r), unicode.IsSpace(r):
			return fmt.Errorf("url: byte %d is the character %U; percent-encode it", i, r)
		case r == utf8.RuneError && !strings.HasPrefix(raw[i:], string(utf8.RuneError)):
			return fmt.Errorf("url: byte %d is not UTF-8; percent-encode it", i)
		}
	}
	return nil
}

func checkPort(port string) error {
	if port == "" {
		return nil
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return errors.New("url: the port is out of range; give a number from 1 to 65535")
	}
	return nil
}

// laneOf returns the place that a parsed URL names: scheme, host and port, in one spelling.
func laneOf(u *url.URL) string {
	host, port := strings.TrimSuffix(strings.ToLower(u.Hostname()), "."), u.Port()
	if port == "" {
		port = "443"
		if u.Scheme == "http" {
			port = "80"
		}
	}
	return u.Scheme + "://" + net.JoinHostPort(host, port)
}

// clip returns the beginning of a text, for an error.
func clip(s string) string {
	const enough = 64
	if len(s) <= enough {
		return s
	}
	return s[:enough] + "…"
}
