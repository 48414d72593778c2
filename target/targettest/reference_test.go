package targettest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belfryhq/belfry/target"
)

// place is a destination in memory with all answers.
type place struct {
	Recorder
	mu  sync.Mutex
	ans Answer
}

func (p *place) Delivery() target.Delivery {
	return target.Delivery{Address: "place://user@somewhere/?token=none", Params: map[string]string{"mode": "plain"}}
}

func (p *place) Answer(a Answer) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ans = a
	return true
}

func (p *place) answer() Answer {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ans
}

var (
	errHTTP    = errors.New("HTTP")
	errCut     = errors.New("connection closed")
	errGarbled = errors.New("the answer cannot be read")
)

// faithful is a target that keeps every law, in the plainest way. Mutants are made by wrapping it.
type faithful struct{ place *place }

func (f faithful) Check(d target.Delivery) error {
	for name, value := range d.Headers {
		if name == "" || strings.ContainsAny(name, " \r\n\x00") {
			return errors.New("header: a name is malformed; use letters, digits and hyphens")
		}
		if strings.ContainsAny(value, "\r\n\x00") {
			return fmt.Errorf("header %s: the value holds a control character; remove it", name)
		}
	}
	if strings.ContainsAny(d.Address, " \r\n") || len(d.Address) > 1000 {
		return errors.New("address: malformed")
	}
	return nil
}

func (f faithful) Lane(d target.Delivery) string { return "somewhere" }

func (f faithful) Deliver(ctx context.Context, d target.Delivery) error {
	if ctx.Err() != nil {
		return fmt.Errorf("interrupted: %w", context.Cause(ctx))
	}
	if err := f.Check(d); err != nil {
		return target.Permanent(err)
	}
	a := f.place.answer()
	if a.Kind == Unreachable {
		return errors.New("connection refused")
	}
	f.place.Record(Arrival{Payload: d.Payload, ContentType: d.ContentType, Headers: d.Headers})
	return f.outcome(ctx, d, a)
}

// outcome turns the place's answer into what Deliver returns.
func (f faithful) outcome(ctx context.Context, d target.Delivery, a Answer) error {
	switch a.Kind {
	case Accept:
		return nil
	case Fail:
		return errors.New("busy")
	case Refuse:
		return target.Permanent(errors.New("refused"))
	case Cut:
		return errCut
	case Echo:
		return errGarbled
	case Hang:
		return hang(ctx, d)
	default:
		return status(d, a)
	}
}

func hang(ctx context.Context, d target.Delivery) error {
	limit := d.Timeout
	if limit == 0 {
		limit = time.Minute
	}
	timeout := time.NewTimer(limit)
	defer timeout.Stop()
	select {
	case <-ctx.Done():
		return fmt.Errorf("interrupted: %w", context.Cause(ctx))
	case <-timeout.C:
		return fmt.Errorf("timeout after %v", limit)
	}
}

func status(d target.Delivery, a Answer) error {
	d.Observe(a.Status, a.Body)
	if a.Status/100 == 2 {
		return nil
	}
	err := fmt.Errorf("%w %d", errHTTP, a.Status)
	if seconds, e := strconv.ParseUint(a.RetryAfter, 10, 63); e == nil {
		return target.RetryAfter(err, time.Duration(min(seconds, 1e9))*time.Second)
	}
	if at, e := http.ParseTime(a.RetryAfter); e == nil {
		return target.RetryAfter(err, max(0, time.Until(at)))
	}
	return err
}

// harness makes targets by the function over places of their own.
func harness(make func(f faithful) target.Target) Harness {
	return Harness{
		New: func(testing.TB) (target.Target, Destination) {
			p := &place{}
			return make(faithful{p}), p
		},
		Secrets: func(d *target.Delivery, text string) {
			d.Address = "place://" + text + "@somewhere/?token=" + text
		},
		Prompt: 400 * time.Millisecond,
	}
}

func TestTheFaithfulTargetKeepsEveryLaw(t *testing.T) {
	t.Parallel()
	h := harness(func(f faithful) target.Target { return f })
	h.Prompt = 0
	Run(t, h)
}

func TestRecorderCopiesAndWaits(t *testing.T) {
	t.Parallel()
	var r Recorder
	payload, headers := []byte("abc"), map[string]string{"A": "1"}
	go func() {
		r.Record(Arrival{Payload: payload, Headers: headers})
	}()
	got := r.Arrivals(t.Context(), 1)
	payload[0], headers["A"] = 'x', "2"
	if !bytes.Equal(got[0].Payload, []byte("abc")) || !maps.Equal(got[0].Headers, map[string]string{"A": "1"}) {
		t.Errorf("the recorded arrival changed: %q %v", got[0].Payload, got[0].Headers)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if got := r.Arrivals(ended, 2); len(got) != 1 {
		t.Errorf("an ended wait returned %d arrivals, want the one there is", len(got))
	}
}
