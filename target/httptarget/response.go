package httptarget

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/belfryhq/belfry/target"
)

// maxRetryAfter is the longest delay that is passed on: longer ones are as good as that.
const maxRetryAfter = 365 * 24 * time.Hour

// verdict returns what the status says of the delivery.
func verdict(resp *http.Response) error {
	code := resp.StatusCode
	if code >= 200 && code <= 299 {
		return nil
	}
	err := errors.New("HTTP " + strconv.Itoa(code))
	if code == http.StatusTooManyRequests || code == http.StatusServiceUnavailable {
		if after, ok := retryAfter(resp.Header, time.Now()); ok {
			return target.RetryAfter(err, after)
		}
	}
	return err
}

// retryAfter returns the delay that a header asks for: seconds, or an instant by the clock that set Date.
func retryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	value := strings.TrimSpace(h.Get("Retry-After"))
	if seconds, err := strconv.ParseUint(value, 10, 63); err == nil {
		return time.Duration(min(seconds, uint64(maxRetryAfter/time.Second))) * time.Second, true
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0, false
	}
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	return min(max(at.Sub(now), 0), maxRetryAfter), true
}

// read returns the beginning of the answer if it is observed, reads some more so that the connection can be used again,
// and closes it. The status has decided already: errors end the reading and mean nothing else.
func (t *Target) read(resp *http.Response, cancel context.CancelFunc, observed bool) []byte {
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusSwitchingProtocols || resp.ContentLength == 0 {
		return nil
	}
	defer time.AfterFunc(t.bodyTimeout, cancel).Stop()
	var beginning bytes.Buffer
	if observed {
		_, _ = io.CopyN(&beginning, resp.Body, int64(t.settings.MaxResponse))
	}
	rest := maxResponseDrained - int64(beginning.Len())
	if rest > 0 && resp.ContentLength <= maxResponseDrained {
		_, _ = io.CopyN(io.Discard, resp.Body, rest)
	}
	return beginning.Bytes()
}
