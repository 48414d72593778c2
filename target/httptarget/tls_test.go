package httptarget_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/belfryhq/belfry/target"
	"github.com/belfryhq/belfry/target/httptarget"
)

// roots returns what a client must trust to trust the server.
func roots(s *httptest.Server) *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	return pool
}

// certificate returns one that signs itself.
func certificate(t *testing.T, change func(*x509.Certificate)) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	change(c)
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// secure starts a TLS server that accepts all requests.
func secure(t *testing.T, c *tls.Config) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	s.TLS = c
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func TestCertificatesAreVerified(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*x509.Certificate)
		trust  bool
		want   string // in the error; empty: none
	}{
		"trusted":       {func(*x509.Certificate) {}, true, ""},
		"untrusted":     {func(*x509.Certificate) {}, false, "certificate signed by unknown authority"},
		"expired":       {func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }, true, "certificate has expired"},
		"another's":     {func(c *x509.Certificate) { c.IPAddresses = nil; c.DNSNames = []string{"other.example"} }, true, "certificate"},
		"not valid yet": {func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Minute) }, true, "certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cert := certificate(t, tt.change)
			s := secure(t, &tls.Config{Certificates: []tls.Certificate{cert}})
			settings := httptarget.Settings{Allow: loopback, RootCAs: x509.NewCertPool()}
			if tt.trust {
				settings.RootCAs.AddCert(cert.Leaf)
			}
			toldTLS(t, newTarget(t, settings), s.URL, tt.want)
		})
	}
}

// toldTLS delivers and fails the test unless that fails with the text in an error that begins with TLS; empty: unless
// it succeeds.
func toldTLS(t *testing.T, tgt *httptarget.Target, url, want string) {
	t.Helper()
	err := tgt.Deliver(t.Context(), target.Delivery{Address: url})
	if want == "" {
		if err != nil {
			t.Errorf("it failed: %v", err)
		}
		return
	}
	if verdict, _, _ := target.Judge(err); verdict != target.Retry || !strings.HasPrefix(err.Error(), "TLS: ") || !strings.Contains(err.Error(), want) {
		t.Errorf("the error is %v (verdict %d), want one of TLS with %q", err, verdict, want)
	}
}

func TestOldVersionsOfTLSAreRefused(t *testing.T) {
	t.Parallel()
	cert := certificate(t, func(*x509.Certificate) {})
	s := secure(t, &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11})
	pool := x509.NewCertPool()
	pool.AddCert(cert.Leaf)
	toldTLS(t, newTarget(t, httptarget.Settings{Allow: loopback, RootCAs: pool}), s.URL, "protocol version")
}

func TestAServerWithoutTLSIsToldFromOneWith(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(s.Close)
	toldTLS(t, newTarget(t, httptarget.Settings{Allow: loopback}), strings.Replace(s.URL, "http:", "https:", 1), "plain HTTP")
}

func TestAClientCertificateIsSent(t *testing.T) {
	t.Parallel()
	cert := certificate(t, func(*x509.Certificate) {})
	pool := x509.NewCertPool()
	pool.AddCert(cert.Leaf)
	s := secure(t, &tls.Config{Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool})
	with := httptarget.Settings{Allow: loopback, RootCAs: pool, TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}}}
	toldTLS(t, newTarget(t, with), s.URL, "")
	without := httptarget.Settings{Allow: loopback, RootCAs: pool}
	toldTLS(t, newTarget(t, without), s.URL, "certificate required")
}
