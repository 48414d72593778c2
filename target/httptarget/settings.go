package httptarget

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"time"

	"github.com/belfryhq/belfry/target"
)

// The defaults of Settings.
const (
	DefaultTimeout     = 30 * time.Second
	DefaultMaxResponse = 16 << 10
	DefaultContentType = "application/json"
)

// Settings are what a Target is made of. The zero value works: it reaches public addresses on any port, signs nothing
// and trusts the system's certificate authorities.
type Settings struct {
	// UserAgent is sent with messages that bring none of their own. Empty: Belfry and its version.
	UserAgent string
	// Timeout bounds a delivery, from the name lookup to the end of the answer, unless the message has a bound of its
	// own. Zero: DefaultTimeout.
	Timeout time.Duration
	// MaxResponse is how many bytes of an answer are observed. Zero: DefaultMaxResponse.
	MaxResponse int

	// Allow are address ranges that may be reached although they are not public. Addresses at which clouds hand out
	// credentials are reached only if Allow names them one by one (/32, /128), never as part of a range.
	Allow []netip.Prefix
	// AllowPrivate admits loopback and private addresses, for development. Link-local addresses and those of cloud
	// metadata stay shut.
	AllowPrivate bool
	// Ports are the ports that may be reached. Empty: any.
	Ports []uint16
	// Proxy, when set, makes all connections, and decides which to make: the ranges above then count for nothing.
	Proxy *url.URL
	// Resolver looks up names. Nil: the system's.
	Resolver *net.Resolver

	// Secrets sign every request, each with a signature of its own: to rotate, give the new one beside the old one for
	// as long as receivers need to change over.
	Secrets []Secret
	// SecretsOf returns the secrets for one delivery, in place of Secrets; none means no signature. An error fails the
	// attempt and its text is kept with it. It is called concurrently.
	SecretsOf func(ctx context.Context, d target.Delivery) ([]Secret, error)

	// RootCAs are the certificate authorities to trust. Nil: the system's.
	RootCAs *x509.CertPool
	// TLSConfig is the base of every TLS connection, e.g. for client certificates. It cannot turn verification off,
	// nor allow less than TLS 1.2.
	TLSConfig *tls.Config
}

// withDefaults returns complete settings, or an error that names what is wrong with them.
func (s Settings) withDefaults() (Settings, error) {
	if err := s.check(); err != nil {
		return Settings{}, fmt.Errorf("httptarget: %w", err)
	}
	if s.UserAgent == "" {
		s.UserAgent = userAgent()
	}
	if s.Timeout == 0 {
		s.Timeout = DefaultTimeout
	}
	if s.MaxResponse == 0 {
		s.MaxResponse = DefaultMaxResponse
	}
	return s, nil
}

func (s Settings) check() error {
	switch {
	case s.Timeout < 0:
		return fmt.Errorf("timeout %v is negative", s.Timeout)
	case s.MaxResponse < 0:
		return fmt.Errorf("max response %d is negative", s.MaxResponse)
	case s.Proxy != nil && (s.Proxy.Hostname() == "" || s.Proxy.Scheme != "http" && s.Proxy.Scheme != "https"):
		return errors.New("proxy: give an http or https URL with a host")
	}
	if at := badByte(s.UserAgent); at >= 0 {
		return fmt.Errorf("user agent %q: byte %d is not printable ASCII", s.UserAgent, at)
	}
	for _, p := range s.Allow {
		if !p.IsValid() || p != p.Masked() {
			return fmt.Errorf("allow: %v is no address range; give one like 10.0.0.0/8", p)
		}
	}
	for _, p := range s.Ports {
		if p == 0 {
			return errors.New("ports: 0 is no port; give numbers from 1 to 65535")
		}
	}
	for i, secret := range s.Secrets {
		if secret.key == nil {
			return fmt.Errorf("secrets: number %d is empty; make it with ParseSecret", i+1)
		}
	}
	return s.checkTLS()
}

func (s Settings) checkTLS() error {
	c := s.TLSConfig
	if c == nil {
		return nil
	}
	if c.InsecureSkipVerify {
		return errors.New("TLS: verification cannot be turned off; trust the receiver's authority with RootCAs")
	}
	if c.MinVersion != 0 && c.MinVersion < tls.VersionTLS12 || c.MaxVersion != 0 && c.MaxVersion < tls.VersionTLS12 {
		return errors.New("TLS: versions below 1.2 cannot be allowed")
	}
	return nil
}

// tlsConfig returns the configuration of TLS connections.
func (s Settings) tlsConfig() *tls.Config {
	c := &tls.Config{}
	if s.TLSConfig != nil {
		c = s.TLSConfig.Clone()
	}
	c.MinVersion = max(c.MinVersion, tls.VersionTLS12)
	if s.RootCAs != nil {
		c.RootCAs = s.RootCAs
	}
	if c.ClientSessionCache == nil {
		c.ClientSessionCache = tls.NewLRUClientSessionCache(maxIdle)
	}
	return c
}
