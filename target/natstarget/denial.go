package natstarget

import (
	"context"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// denials tell deliveries that the server did not permit what they sent. The server says so beside its answers and the
// client passes it on by a queue of its own, in order but late; so whoever has published waits until the queue has
// caught up.
type denials struct {
	mu      sync.Mutex
	watches map[string][]*watch // by subject
	noInbox bool                // answers cannot be received
	last    error               // the last error that came through the queue
	moved   chan struct{}       // closed when the next one does
}

// begin forgets what was not permitted on an earlier connection.
func (d *denials) begin() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.noInbox = false
}

// muted reports whether answers cannot be received.
func (d *denials) muted() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.noInbox
}

// watch is what a delivery waits by.
type watch struct {
	subject string
	denied  chan struct{} // closed if it was
}

// watch begins to look out for a denial of the subject. It must be ended by unwatch.
func (d *denials) watch(subject string) *watch {
	w := &watch{subject, make(chan struct{})}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.watches == nil {
		d.watches = make(map[string][]*watch)
	}
	d.watches[subject] = append(d.watches[subject], w)
	return w
}

func (d *denials) unwatch(w *watch) {
	d.mu.Lock()
	defer d.mu.Unlock()
	left := d.watches[w.subject]
	for i, other := range left {
		if other == w {
			left[i] = left[len(left)-1]
			left = left[:len(left)-1]
			break
		}
	}
	if len(left) == 0 {
		delete(d.watches, w.subject)
		return
	}
	d.watches[w.subject] = left
}

// denial matches what the server says of a publication or a subscription. The subject is quoted as in Go.
var denial = regexp.MustCompile(`(?i)permissions violation for (publish to|subscription to|publish with reply of) ("(?:[^"\\]|\\.)*")`)

// note takes the next error of the queue.
func (d *denials) note(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last = err
	if d.moved != nil {
		close(d.moved)
		d.moved = nil
	}
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return
	}
	match := denial.FindStringSubmatch(err.Error())
	if match == nil {
		return
	}
	if !strings.EqualFold(match[1], "publish to") {
		d.noInbox = true // the one subscription that there is
		for subject, ws := range d.watches {
			if strings.HasPrefix(subject, apiPrefix) {
				deny(ws)
				delete(d.watches, subject)
			}
		}
		return
	}
	subject, err := strconv.Unquote(match[2])
	if err == nil {
		deny(d.watches[subject])
		delete(d.watches, subject)
	}
}

func deny(ws []*watch) {
	for _, w := range ws {
		close(w.denied)
	}
}

// caughtUp waits until the queue has passed on the error, which is the client's last, and all before it.
func (d *denials) caughtUp(ctx context.Context, err error) {
	const enough = 100 * time.Millisecond
	late := time.NewTimer(enough)
	defer late.Stop()
	for {
		d.mu.Lock()
		if !errors.Is(err, nats.ErrPermissionViolation) || d.last == err { //nolint:errorlint // this very error
			d.mu.Unlock()
			return
		}
		if d.moved == nil {
			d.moved = make(chan struct{})
		}
		moved := d.moved
		d.mu.Unlock()
		select {
		case <-moved:
		case <-late.C: // it does not come by the queue
			d.mu.Lock()
			d.last = err
			d.mu.Unlock()
			return
		case <-ctx.Done():
			return
		}
	}
}
