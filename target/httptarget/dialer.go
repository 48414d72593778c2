package httptarget

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"
)

// dialer makes connections to addresses that the guard admits.
type dialer struct {
	guard    *guard // nil: any
	resolver *net.Resolver
	life     context.Context // of the target
}

// plainError is a failure in words that may be told as they are.
type plainError string

func (e plainError) Error() string { return string(e) }

const (
	// errNoneReached is a host of whose addresses some are not allowed and the others cannot be reached.
	errNoneReached plainError = "connection failed"
	errClosed      plainError = "the target is closed"
)

// dial connects to one of the addresses that the host resolves to. Each is checked by itself, after the lookup and
// right before the connection is made, so it does not matter how the host was written, what it resolved to before, or
// which of its addresses wins. The host is not allowed if none of its addresses was.
func (d *dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if d.life.Err() != nil {
		return nil, errClosed
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(d.life, cancel)()

	var blocked atomic.Pointer[blockedError]
	var admitted atomic.Bool
	nd := net.Dialer{Timeout: connectTimeout, Resolver: d.resolver}
	if d.guard != nil {
		nd.ControlContext = func(_ context.Context, _, address string, _ syscall.RawConn) error {
			err := d.guard.admit(address)
			if err == nil {
				admitted.Store(true)
				return nil
			}
			blocked.Store(err)
			return err
		}
	}
	conn, err := nd.DialContext(ctx, network, address)
	if err == nil {
		return conn, nil
	}
	if d.life.Err() != nil {
		return nil, errClosed
	}
	if b := blocked.Load(); b != nil && !admitted.Load() {
		return nil, b
	}
	if _, ok := errors.AsType[*blockedError](err); ok {
		return nil, errNoneReached
	}
	return nil, err
}

// admit returns nil if the address of a socket may be connected to.
func (g *guard) admit(address string) *blockedError {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return &blockedError{fmt.Sprintf("address %q is not allowed: see BELFRY_EGRESS_ALLOW", address)}
	}
	return g.check(to)
}
