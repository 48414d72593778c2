package web

import (
	"bytes"
	"io"
	"net/http"
)

// Direct is a transport that hands requests to a handler in this process: who speaks HTTP need not know whether there is a
// network in between.
func Direct(handler http.Handler) http.RoundTripper { return direct{handler} }

type direct struct{ handler http.Handler }

// RoundTrip serves the request and returns the answer whole.
func (d direct) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body == nil {
		req = req.Clone(req.Context())
		req.Body = http.NoBody
	}
	defer func() { _ = req.Body.Close() }()
	w := &answer{header: http.Header{}}
	d.handler.ServeHTTP(w, req)
	w.WriteHeader(http.StatusOK)
	return &http.Response{
		StatusCode: w.status, Status: http.StatusText(w.status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.header, Body: io.NopCloser(&w.body), ContentLength: int64(w.body.Len()), Request: req,
	}, nil
}

// answer collects what a handler writes.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header returns the header to be filled in.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader notes the first status.
func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
}

// Write adds to the body.
func (a *answer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(p)
}
