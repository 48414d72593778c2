package redisstore

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

// address is what a URL says of the servers.
type address struct {
	kind     string // "", "cluster" or "sentinel"
	hosts    []string
	user     string
	password string
	db       int
	tls      *tls.Config
	settings Settings

	master           string // of Sentinel
	sentinelUser     string
	sentinelPassword string
}

// URLError tells what is wrong with a URL. It tells nothing of what may be secret.
type URLError struct{ Reason string }

// Error returns the reason.
func (e *URLError) Error() string { return e.Reason }

// parseURL reads a URL in one of the forms that Open takes. Its parameters go before the settings. Its error is a URLError.
func parseURL(text string, settings Settings) (address, error) {
	a, err := readURL(text, settings)
	if err != nil {
		return address{}, &URLError{err.Error()}
	}
	return a, nil
}

func readURL(text string, settings Settings) (address, error) {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		return address{}, errors.New("the URL has no scheme; give redis://host:port")
	}
	a := address{settings: settings}
	scheme = strings.ToLower(scheme)
	switch scheme {
	case "redis", "rediss":
	case "redis+cluster", "rediss+cluster", "redis+sentinel", "rediss+sentinel":
		_, a.kind, _ = strings.Cut(scheme, "+")
	default:
		return address{}, fmt.Errorf("%q is no scheme of a Redis URL", scheme)
	}
	if strings.HasPrefix(scheme, "rediss") {
		a.tls = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	rest, query, _ := strings.Cut(rest, "?")
	authority, path, _ := strings.Cut(rest, "/")
	if err := a.readAuthority(authority); err != nil {
		return address{}, err
	}
	if err := a.readDB(path); err != nil {
		return address{}, err
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return address{}, errors.New("what follows the ? of the URL is not name=value")
	}
	if err := a.readParameters(values); err != nil {
		return address{}, err
	}
	if a.kind == "sentinel" && a.master == "" {
		return address{}, errors.New("a Sentinel URL names its master: ?master=NAME")
	}
	a.settings, err = a.settings.withDefaults()
	return a, err
}

// readAuthority reads user, password and hosts. It is not for net/url, which knows one host only.
func (a *address) readAuthority(text string) error {
	if at := strings.LastIndexByte(text, '@'); at >= 0 {
		user, password, _ := strings.Cut(text[:at], ":")
		var err, err2 error
		a.user, err = url.PathUnescape(user)
		a.password, err2 = url.PathUnescape(password)
		if err != nil || err2 != nil {
			return errors.New("user and password of the URL are not percent-encoded")
		}
		text = text[at+1:]
	}
	port := "6379"
	if a.kind == "sentinel" {
		port = "26379"
	}
	for host := range strings.SplitSeq(text, ",") {
		if host == "" {
			host = "127.0.0.1"
		}
		if _, _, err := net.SplitHostPort(host); err != nil {
			host = net.JoinHostPort(strings.Trim(host, "[]"), port)
		}
		a.hosts = append(a.hosts, host)
	}
	if a.kind == "" && len(a.hosts) > 1 {
		return errors.New("a redis URL names one host; several are redis+cluster or redis+sentinel")
	}
	if a.tls != nil && a.kind == "" {
		a.tls.ServerName, _, _ = net.SplitHostPort(a.hosts[0])
	}
	return nil
}

// readDB reads the number of the database, which is the path.
func (a *address) readDB(path string) error {
	if path = strings.Trim(path, "/"); path == "" {
		return nil
	}
	db, err := strconv.Atoi(path)
	if err != nil || db < 0 {
		return errors.New("the path of a Redis URL is the number of a database")
	}
	if a.kind == "cluster" && db != 0 {
		return errors.New("a Redis Cluster has no database but 0")
	}
	a.db = db
	return nil
}

// readParameters reads what follows the question mark.
func (a *address) readParameters(values url.Values) error {
	for name := range values {
		if err := a.readParameter(name, values.Get(name)); err != nil {
			return fmt.Errorf("parameter %s: %w", name, err)
		}
	}
	return nil
}

func (a *address) readParameter(name, value string) error {
	s, sentinel := &a.settings, a.kind == "sentinel"
	var err error
	switch {
	case name == "prefix":
		s.Prefix = value
	case name == "wait_replicas":
		s.WaitReplicas, err = number(value)
	case name == "wait_timeout":
		s.WaitTimeout, err = duration(value)
	case name == "pool":
		s.Pool, err = number(value)
	case name == "timeout":
		s.Timeout, err = duration(value)
	case name == "ca" && a.tls != nil:
		err = a.readCA(value)
	case name == "master" && sentinel:
		a.master = value
	case name == "sentinel_user" && sentinel:
		a.sentinelUser = value
	case name == "sentinel_password" && sentinel:
		a.sentinelPassword = value
	default:
		err = errors.New("a URL of this scheme has no such parameter")
	}
	return err
}

func number(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, errors.New("give a number")
	}
	return n, nil
}

func duration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, errors.New("give a duration such as 500ms or 5s")
	}
	return d, nil
}

// readCA reads the file of the authorities that certificates of servers are checked against.
func (a *address) readCA(file string) error {
	pem, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	a.tls.RootCAs = x509.NewCertPool()
	if !a.tls.RootCAs.AppendCertsFromPEM(pem) {
		return errors.New("the file has no certificate")
	}
	return nil
}
