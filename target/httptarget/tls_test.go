package httptarget_test

import (
	"crypto/x509"
	"net/http/httptest"
)

// roots returns what a client must trust to trust the server.
func roots(s *httptest.Server) *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	return pool
}
