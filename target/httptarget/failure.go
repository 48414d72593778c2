package httptarget

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/belfryhq/belfry/target"
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

// failure returns why a request was not answered, in plain words: first the end of the delivery's time or of the
// caller's interest in it, then what went wrong. The context is the one that the limit bounds.
func failure(ctx context.Context, limit time.Duration, err error) error {
	switch cause := context.Cause(ctx); {
	case cause == context.DeadlineExceeded: //nolint:errorlint // a cause that wraps it is the caller's own
		return timeoutError{limit}
	case cause != nil:
		return interrupted(ctx)
	}
	if blocked, ok := errors.AsType[*blockedError](err); ok {
		return target.Permanent(blocked)
	}
	return errors.New(describe(err))
}

// describe says what went wrong in words of its own: the texts of errors may repeat the request, or what a stranger
// answered. Those of a TLS handshake cannot, as it comes before the request.
func describe(err error) string {
	if plain, ok := errors.AsType[plainError](err); ok {
		return string(plain)
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "proxyconnect" {
		return "proxy: " + describe(op.Err)
	}
	if text := describeTLS(err); text != "" {
		return "TLS: " + text
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return describeDNS(dns)
	}
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return describeErrno(errno)
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return "connection timed out"
	}
	return describeText(err)
}

func describeTLS(err error) string {
	text := err.Error()
	if verification, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		text = strings.TrimPrefix(verification.Err.Error(), "x509: ")
		if !strings.Contains(text, "certificate") {
			text = "certificate: " + text
		}
		return printable(text)
	}
	if record, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		if string(record.RecordHeader[:]) == "HTTP/" {
			return "the server answers in plain HTTP"
		}
		return printable(strings.TrimPrefix(record.Msg, "tls: "))
	}
	switch op, isOp := errors.AsType[*net.OpError](err); {
	case isOp && (op.Op == "remote error" || op.Op == "local error"):
		return printable(op.Op + ": " + strings.TrimPrefix(op.Err.Error(), "tls: "))
	case strings.HasPrefix(text, "tls: "):
		return printable(text[len("tls: "):])
	case text == "net/http: TLS handshake timeout":
		return "handshake timeout"
	}
	return ""
}

func describeDNS(err *net.DNSError) string {
	switch {
	case err.IsNotFound:
		return "no such host"
	case err.IsTimeout:
		return "name lookup timed out"
	default:
		return "name lookup failed"
	}
}

func describeErrno(errno syscall.Errno) string {
	switch errno {
	case syscall.ECONNRESET:
		return "connection reset"
	case syscall.EPIPE:
		return "connection closed"
	default:
		return errno.Error() // of the system: connection refused, no route to host
	}
}

// describeText tells apart, by what they begin with or hold, errors that have no type of their own.
func describeText(err error) string {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return "connection closed without an answer"
	}
	text := err.Error()
	switch {
	case strings.Contains(text, "server closed idle connection"):
		return "connection closed without an answer"
	case strings.Contains(text, "response headers exceeded"), strings.Contains(text, "response header list larger"):
		return "the answer's headers exceed 64 KiB"
	case strings.Contains(text, "malformed"):
		return "the answer is not HTTP"
	case strings.HasPrefix(text, "http2: "), strings.HasPrefix(text, "stream error: "), strings.HasPrefix(text, "connection error: "):
		return "HTTP/2 failed"
	default:
		return "the request failed"
	}
}

// printable returns the beginning of a text without what does not print.
func printable(text string) string {
	const enough = 200
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, text)
	return text[:min(len(text), enough)]
}
