package natstarget

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/belfryhq/belfry/target"
)

// plainError is a failure in words that may be told as they are.
type plainError string

func (e plainError) Error() string { return string(e) }

// What deliveries fail of.
const (
	errLost        plainError = "the connection to NATS was lost before the message was confirmed"
	errDenied      plainError = "NATS does not permit publishing to the subject"
	errNoStream    plainError = "the stream on the subject does not answer"
	errNoAck       plainError = "what answered first was not the stream on the subject"
	errClosed      plainError = "the target is closed"
	errForbidden   plainError = "not permitted"
	errNoJetStream plainError = "JetStream is not enabled"
)

// timeoutError is a delivery that took longer than it may.
type timeoutError struct{ after time.Duration }

func (e timeoutError) Error() string { return "timeout after " + e.after.String() }

// Unwrap makes a timeout known as one.
func (timeoutError) Unwrap() error { return context.DeadlineExceeded }

// interrupted is a delivery whose context has ended.
func interrupted(ctx context.Context) error {
	return fmt.Errorf("delivery interrupted: %w", context.Cause(ctx))
}

// failure returns why a message was not delivered, in plain words: first the end of the delivery's time or of the
// caller's interest in it, then what went wrong. The context is the one that the limit bounds.
func failure(ctx context.Context, limit time.Duration, err error) error {
	switch cause := context.Cause(ctx); {
	case cause == context.DeadlineExceeded: //nolint:errorlint // a cause that wraps it is the caller's own
		return timeoutError{limit}
	case cause != nil:
		return interrupted(ctx)
	}
	if errors.Is(err, nats.ErrMaxPayload) {
		return target.Permanent(plainError("the message is larger than the NATS server takes"))
	}
	api, ok := errors.AsType[*jetstream.APIError](err)
	if ok && api.ErrorCode == jetstream.JSErrCodeStreamMessageExceedsMaximum {
		return target.Permanent(plainError("the message is larger than the stream takes"))
	}
	return plainError(describe(err))
}

// describe says what went wrong in words of its own: the texts of errors may repeat a server's URL.
func describe(err error) string {
	if plain, ok := errors.AsType[plainError](err); ok {
		return string(plain)
	}
	if api, ok := errors.AsType[*jetstream.APIError](err); ok {
		return fmt.Sprintf("JetStream: %s (%d)", api.Description, api.ErrorCode)
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		if dns.IsNotFound {
			return "no such host"
		}
		return "name lookup failed"
	}
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno.Error()
	}
	return describeClient(err)
}

// told are errors of the client whose own words are good.
var told = []error{
	nats.ErrAuthorization, nats.ErrAuthExpired, nats.ErrAuthRevoked, nats.ErrAccountAuthExpired, nats.ErrPermissionViolation,
	nats.ErrSecureConnRequired, nats.ErrSecureConnWanted, nats.ErrMaxConnectionsExceeded, nats.ErrMaxAccountConnectionsExceeded,
	nats.ErrStaleConnection, nats.ErrHeadersNotSupported, nats.ErrNoServers, nats.ErrNoResponders, nats.ErrNoInfoReceived, nats.ErrTLS,
}

func describeClient(err error) string {
	for _, known := range told {
		if errors.Is(err, known) {
			return strings.TrimPrefix(known.Error(), "nats: ")
		}
	}
	netError, isNet := errors.AsType[net.Error](err)
	switch {
	case lost(err):
		return string(errLost)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "connection closed"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrTimeout), isNet && netError.Timeout():
		return "no answer in time"
	case errors.Is(err, jetstream.ErrInvalidJSAck):
		return string(errNoAck)
	default:
		return "NATS failed"
	}
}

// lost reports whether the error says that there is no connection any more.
func lost(err error) bool {
	return errors.Is(err, errLost) || errors.Is(err, nats.ErrReconnectBufExceeded) || errors.Is(err, nats.ErrConnectionClosed) || errors.Is(err, nats.ErrDisconnected)
}
