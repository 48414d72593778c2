package targettest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belfryhq/belfry/target"
)

// deliver is a target in a function; its Check and Lane are those of the faithful one.
type deliver struct {
	faithful
	f func(ctx context.Context, d target.Delivery) error
}

func (m deliver) Deliver(ctx context.Context, d target.Delivery) error { return m.f(ctx, d) }

// changed returns a target that delivers something else than it is given.
func changed(f faithful, change func(*target.Delivery)) target.Target {
	return deliver{f, func(ctx context.Context, d target.Delivery) error {
		d.Headers = maps.Clone(d.Headers)
		change(&d)
		return f.Deliver(ctx, d)
	}}
}

// judged returns a target that makes something else of an answer.
func judged(f faithful, judge func(d target.Delivery, err error) error) target.Target {
	return deliver{f, func(ctx context.Context, d target.Delivery) error {
		return judge(d, f.Deliver(ctx, d))
	}}
}

// mutants are targets with one defect each, by the law that they break.
var mutants = map[string][]func(f faithful) target.Target{
	"payload": {
		func(f faithful) target.Target {
			return changed(f, func(d *target.Delivery) { d.Payload = bytes.ToValidUTF8(d.Payload, []byte("?")) })
		},
		func(f faithful) target.Target {
			return changed(f, func(d *target.Delivery) { d.Payload = d.Payload[:min(len(d.Payload), 65536)] })
		},
		func(f faithful) target.Target {
			return changed(f, func(d *target.Delivery) {
				if d.Payload == nil {
					d.Payload = []byte("null")
				}
			})
		},
	},
	"headers": {
		func(f faithful) target.Target {
			return changed(f, func(d *target.Delivery) { delete(d.Headers, "X-Empty") })
		},
		func(f faithful) target.Target {
			return changed(f, func(d *target.Delivery) {
				for name, value := range d.Headers {
					d.Headers[name] = strings.Join(strings.Fields(value), " ")
				}
			})
		},
	},
	"content type": {
		func(f faithful) target.Target {
			return changed(f, func(d *target.Delivery) { d.ContentType = "application/json" })
		},
		func(f faithful) target.Target {
			return changed(f, func(d *target.Delivery) {
				if len(d.Payload) == 0 {
					d.ContentType = ""
				}
			})
		},
	},
	"line break": {
		func(f faithful) target.Target { return gullible{f} },
		func(f faithful) target.Target {
			return deliver{f, func(_ context.Context, d target.Delivery) error {
				f.place.Record(Arrival{Payload: d.Payload, Headers: parse(d.Headers)})
				return nil
			}}
		},
	},
	"accept": {
		func(f faithful) target.Target { // sends twice
			return deliver{f, func(ctx context.Context, d target.Delivery) error {
				_ = f.Deliver(ctx, d)
				return f.Deliver(ctx, d)
			}}
		},
		func(f faithful) target.Target { // sends nothing
			return deliver{f, func(context.Context, target.Delivery) error { return nil }}
		},
	},
	"fail": {
		func(f faithful) target.Target { return insistent(f, "busy") },
		func(f faithful) target.Target { return lenient(f, "busy") },
		func(f faithful) target.Target { return harsh(f, "busy") },
		func(f faithful) target.Target {
			return judged(f, func(_ target.Delivery, err error) error { return target.RetryAfter(err, time.Hour) })
		},
	},
	"refuse":      {func(f faithful) target.Target { return softened(f) }},
	"cut":         {func(f faithful) target.Target { return insistent(f, errCut.Error()) }, func(f faithful) target.Target { return lenient(f, errCut.Error()) }},
	"echo":        {func(f faithful) target.Target { return lenient(f, errGarbled.Error()) }},
	"unreachable": {func(f faithful) target.Target { return harsh(f, "connection refused") }, func(f faithful) target.Target { return blocking(f, "connection refused") }},
	"recovery":    {func(f faithful) target.Target { return &sulking{faithful: f} }},
	"status": {
		func(f faithful) target.Target { return lenient(f, "HTTP 302") },
		func(f faithful) target.Target { return lenient(f, "HTTP 101") },
		func(f faithful) target.Target { return harsh(f, "HTTP 410") },
		func(f faithful) target.Target {
			return judged(f, func(_ target.Delivery, err error) error {
				if err != nil {
					return errHTTP
				}
				return nil
			})
		},
	},
	"observation": {
		func(f faithful) target.Target { return &forgetful{faithful: f} },
		func(f faithful) target.Target {
			return changed(f, func(d *target.Delivery) { d.Observed = nil })
		},
	},
	"retry after seconds": {
		func(f faithful) target.Target {
			return delayed(f, func(d time.Duration) time.Duration { return d / 1000 })
		},
		func(f faithful) target.Target {
			return delayed(f, func(d time.Duration) time.Duration { return d * 1000 }) // overflows
		},
		func(f faithful) target.Target { return softened(f) },
	},
	"retry after date": {
		func(f faithful) target.Target {
			return delayed(f, func(d time.Duration) time.Duration { return d + time.Hour })
		},
		func(f faithful) target.Target { return softened(f) },
	},
	"retry after nonsense": {
		func(f faithful) target.Target {
			return judged(f, func(_ target.Delivery, err error) error { return target.RetryAfter(err, 0) })
		},
	},
	"cancel":   {func(f faithful) target.Target { return detached(f) }, func(f faithful) target.Target { return causeless(f) }},
	"deadline": {func(f faithful) target.Target { return detached(f) }, func(f faithful) target.Target { return causeless(f) }},
	"timeout": {
		func(f faithful) target.Target { return changed(f, func(d *target.Delivery) { d.Timeout = 0 }) },
		func(f faithful) target.Target { return harsh(f, "timeout") },
	},
	"ended": {
		func(f faithful) target.Target {
			return judgedFirst(f, func(ctx context.Context, d target.Delivery) {
				if ctx.Err() != nil {
					f.place.Record(Arrival{Payload: d.Payload})
				}
			})
		},
	},
	"concurrent": {
		func(f faithful) target.Target { return &singular{faithful: f} },
	},
	"kept": {
		func(f faithful) target.Target { return &lagging{faithful: f} },
	},
	"changed": {
		func(f faithful) target.Target {
			return judgedFirst(f, func(_ context.Context, d target.Delivery) { d.Headers["User-Agent"] = "x" })
		},
		func(f faithful) target.Target {
			return judgedFirst(f, func(_ context.Context, d target.Delivery) { d.Payload[0]++ })
		},
	},
	"check": {func(f faithful) target.Target { return picky{f} }},
	"trace": {
		func(f faithful) target.Target { return strict{f} },
		func(f faithful) target.Target {
			return deliver{f, func(ctx context.Context, d target.Delivery) error {
				if len(d.Params) > 0 {
					return target.Permanent(errors.New("param: is unknown"))
				}
				return f.Deliver(ctx, d)
			}}
		},
	},
	"lane": {func(f faithful) target.Target { return laned{f, func(d target.Delivery) string { return d.ID }} }},
	"secrets in errors": {
		func(f faithful) target.Target { return telling(f, func(d target.Delivery) string { return d.Address }) },
		func(f faithful) target.Target {
			return telling(f, func(d target.Delivery) string { return string(d.Payload) })
		},
		func(f faithful) target.Target {
			return telling(f, func(d target.Delivery) string { return d.Headers["Authorization"] })
		},
		func(f faithful) target.Target {
			return deliver{f, func(ctx context.Context, d target.Delivery) error {
				err := f.Deliver(ctx, d)
				if err != nil && f.place.answer().Kind == Echo {
					return fmt.Errorf("%w: %s", err, d.Payload)
				}
				return err
			}}
		},
	},
	"secrets in checks": {func(f faithful) target.Target { return quoting{f} }},
	"secrets in lanes":  {func(f faithful) target.Target { return laned{f, func(d target.Delivery) string { return d.Address }} }},
}

// parse returns headers as a receiver reads them that takes a line break for the end of a header.
func parse(headers map[string]string) map[string]string {
	parsed := make(map[string]string)
	for name, value := range headers {
		for line := range strings.Lines(strings.ReplaceAll(name+": "+value, "\r", "\n")) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
			parsed[name] = strings.TrimSpace(value)
		}
	}
	return parsed
}

func TestEveryLawFailsUnderItsMutants(t *testing.T) {
	t.Parallel()
	for _, law := range Laws() {
		if len(mutants[law.Name]) == 0 {
			t.Errorf("no mutant breaks the law %q", law.Name)
		}
		for i, mutant := range mutants[law.Name] {
			t.Run(fmt.Sprintf("%s/%d", law.Name, i+1), func(t *testing.T) {
				t.Parallel()
				if verdict := try(t, law, harness(mutant)); !strings.HasPrefix(verdict, law.Rule) {
					t.Errorf("the mutant was not found; the law said %q", verdict)
				}
			})
		}
	}
}

func TestNoMutantIsLeftWithoutItsLaw(t *testing.T) {
	t.Parallel()
	named := make(map[string]bool)
	for _, law := range Laws() {
		if named[law.Name] {
			t.Errorf("two laws have the name %q", law.Name)
		}
		named[law.Name] = true
	}
	for name := range mutants {
		if !named[name] {
			t.Errorf("the mutants of %q break no law", name)
		}
	}
}

// notes is a reporter that notes what a law says.
type notes struct {
	ctx  context.Context
	mu   sync.Mutex
	text string
}

func (*notes) Helper()                    {}
func (n *notes) Context() context.Context { return n.ctx }

func (n *notes) Fatalf(format string, args ...any) {
	n.mu.Lock()
	n.text = fmt.Sprintf(format, args...)
	n.mu.Unlock()
	runtime.Goexit()
}

func (n *notes) Skipf(format string, args ...any) { n.Fatalf("skipped: "+format, args...) }

// try checks one law and returns what it said; empty: it is kept.
func try(t *testing.T, law Law, h Harness) string {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n := &notes{ctx: ctx}
	var wg sync.WaitGroup
	wg.Go(func() { law.check(newEnv(n, t, law, h)) })
	wg.Wait()
	return n.text
}
