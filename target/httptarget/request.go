package httptarget

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/belfryhq/belfry/target"
)

// paramMethod is the parameter that names the method.
const paramMethod = "method"

// request returns the request that makes the delivery. Nothing in it is the delivery's own: the transport may read the
// body even after it has answered. An error that is no verdict yet means that no attempt can ever succeed.
func (t *Target) request(ctx context.Context, d *target.Delivery) (*http.Request, error) {
	u, err := parseURL(d.Address)
	if err != nil {
		return nil, target.Permanent(err)
	}
	method, err := methodOf(d)
	if err != nil {
		return nil, target.Permanent(err)
	}
	h, err := t.headers(d)
	if err != nil {
		return nil, target.Permanent(err)
	}
	if err := t.sign(ctx, h, d); err != nil {
		return nil, err
	}
	req := &http.Request{
		Method: method, URL: u, Host: u.Host, Header: h.header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Body: http.NoBody,
	}
	if u.User != nil && h.header["Authorization"] == nil {
		password, _ := u.User.Password()
		req.SetBasicAuth(u.User.Username(), password)
	}
	if len(d.Payload) > 0 {
		setBody(req, bytes.Clone(d.Payload))
	}
	return req.WithContext(ctx), nil
}

func methodOf(d *target.Delivery) (string, error) {
	method, ok := d.Params[paramMethod]
	if !ok {
		return http.MethodPost, nil
	}
	return method, CheckMethod(method)
}

// setBody gives the request a body that it can send again when a connection turns out to be closed before anything was
// written to it.
func setBody(req *http.Request, payload []byte) {
	req.ContentLength = int64(len(payload))
	req.Body = io.NopCloser(bytes.NewReader(payload))
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(payload)), nil }
}

// headers returns the header of a request, but for its signature. A message's own headers replace Content-Type and
// User-Agent; what it may not bring is refused again here, because what was stored need not have been checked.
func (t *Target) headers(d *target.Delivery) (*headers, error) {
	h := newHeaders(len(d.Headers) + 7)
	contentType := d.ContentType
	if contentType == "" {
		contentType = DefaultContentType
	}
	if err := checkHeader("Content-Type", contentType); err != nil {
		return nil, err
	}
	h.set("Content-Type", contentType)
	h.set("User-Agent", t.settings.UserAgent)
	for name, value := range d.Headers {
		if err := checkHeader(name, value); err != nil {
			return nil, err
		}
		h.set(http.CanonicalHeaderKey(name), value)
	}
	h.set(headerAttempt, strconv.Itoa(d.Attempt))
	h.set(headerFence, strconv.FormatInt(d.Fence, 10))
	return h, nil
}

// headers is an http.Header whose values lie in one array.
type headers struct {
	header http.Header
	values []string
}

func newHeaders(n int) *headers {
	return &headers{make(http.Header, n), make([]string, 0, n)}
}

// set sets a header by its canonical name.
func (h *headers) set(name, value string) {
	h.values = append(h.values, value)
	n := len(h.values)
	h.header[name] = h.values[n-1 : n : n]
}

// checkParams refuses parameters that mean nothing here.
func checkParams(params map[string]string) error {
	for name, value := range params {
		if strings.HasPrefix(name, target.TracePrefix) {
			continue
		}
		if name != paramMethod {
			return fmt.Errorf("param %q: is unknown; HTTP has %q", clip(name), paramMethod)
		}
		if err := CheckMethod(value); err != nil {
			return err
		}
	}
	return nil
}
