package httptarget

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/belfryhq/belfry/target"
)

// How many connections wait for the next request, and for how long: shorter than the 5 seconds after which common
// servers close theirs, so that no request meets a connection at the moment of its end. Requests at a rate for which
// connections pay come far more often.
const (
	maxIdle        = 1024
	maxIdlePerHost = 128
	idleTimeout    = 4 * time.Second
)

// The bounds of one connection and of one answer.
const (
	connectTimeout      = 30 * time.Second
	handshakeTimeout    = 10 * time.Second
	continueTimeout     = time.Second
	pingAfter           = 15 * time.Second
	pingTimeout         = 10 * time.Second
	maxResponseHeader   = 64 << 10
	maxResponseDrained  = 64 << 10
	responseBodyTimeout = 5 * time.Second
)

var (
	_ target.Target  = (*Target)(nil)
	_ target.Checker = (*Target)(nil)
	_ target.Laner   = (*Target)(nil)
)

// Target delivers messages as HTTP requests. It may be used concurrently.
type Target struct {
	settings    Settings
	transport   *http.Transport
	bodyTimeout time.Duration // how long the rest of an answer is read once its status has come
	close       context.CancelFunc
}

// New returns a Target. It connects to nothing; Close ends what it will have connected to.
func New(s Settings) (*Target, error) {
	s, err := s.withDefaults()
	if err != nil {
		return nil, err
	}
	life, cancel := context.WithCancel(context.Background())
	dialer := &dialer{guard: newGuard(s), resolver: s.Resolver, life: life}
	transport := &http.Transport{
		DialContext:            dialer.dial,
		TLSClientConfig:        s.tlsConfig(),
		TLSHandshakeTimeout:    handshakeTimeout,
		DisableCompression:     true,
		MaxIdleConns:           maxIdle,
		MaxIdleConnsPerHost:    maxIdlePerHost,
		IdleConnTimeout:        idleTimeout,
		ExpectContinueTimeout:  continueTimeout,
		MaxResponseHeaderBytes: maxResponseHeader,
		ForceAttemptHTTP2:      true,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
	}
	if s.Proxy != nil {
		transport.Proxy = http.ProxyURL(s.Proxy)
	}
	return &Target{settings: s, transport: transport, bodyTimeout: responseBodyTimeout, close: cancel}, nil
}

// Close ends idle connections and those being made. Deliveries under way go on; those that need a new connection fail.
func (t *Target) Close() error {
	t.close()
	t.transport.CloseIdleConnections()
	return nil
}

// Check returns nil if the delivery can be made as far as that can be told without making it, and otherwise an error
// that names the field, what is wrong and what to do. It tells no header value, user info, query or payload.
func (t *Target) Check(d target.Delivery) error {
	if err := CheckURL(d.Address); err != nil {
		return err
	}
	if err := checkParams(d.Params); err != nil {
		return err
	}
	if d.ContentType != "" {
		if err := checkHeader("Content-Type", d.ContentType); err != nil {
			return err
		}
	}
	if d.Timeout < 0 {
		return fmt.Errorf("timeout: %v is negative; give a positive one, or none", d.Timeout)
	}
	return CheckHeaders(d.Headers)
}

// Lane returns the URL's scheme, host and port in one spelling. Addresses that are no URL share a lane.
func (t *Target) Lane(d target.Delivery) string {
	u, err := parseURL(d.Address)
	if err != nil {
		return "invalid"
	}
	return laneOf(u)
}

// Deliver makes the request. See the package's documentation for what becomes of it.
func (t *Target) Deliver(ctx context.Context, d target.Delivery) error {
	if ctx.Err() != nil {
		return interrupted(ctx)
	}
	limit := t.limit(ctx, &d)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	req, err := t.request(ctx, &d)
	if err != nil {
		return err
	}
	resp, err := t.transport.RoundTrip(req)
	if err != nil {
		return failure(ctx, limit, err)
	}
	d.Observe(resp.StatusCode, t.read(resp, cancel, d.Observed != nil))
	return verdict(resp)
}

// limit returns how long the delivery may take. A deadline of the context that comes first is told in round figures,
// as it was set a moment ago.
func (t *Target) limit(ctx context.Context, d *target.Delivery) time.Duration {
	limit := t.settings.Timeout
	if d.Timeout > 0 {
		limit = d.Timeout
	}
	deadline, ok := ctx.Deadline()
	if !ok {
		return limit
	}
	left, step := time.Until(deadline), time.Millisecond
	if left > time.Second {
		step = time.Second / 10
	}
	return min(limit, max(left.Round(step), step))
}
