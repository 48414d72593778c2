package targettest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/belfryhq/belfry/target"
)

// gullible accepts every header.
type gullible struct{ faithful }

func (gullible) Check(target.Delivery) error { return nil }

// picky refuses what can be delivered.
type picky struct{ faithful }

func (p picky) Check(d target.Delivery) error {
	if len(d.Payload) == 0 {
		return errors.New("payload: empty; give one")
	}
	return p.faithful.Check(d)
}

// strict knows every param there is.
type strict struct{ faithful }

func (s strict) Check(d target.Delivery) error {
	if len(d.Params) > 0 {
		return errors.New("param: is unknown")
	}
	return s.faithful.Check(d)
}

// quoting repeats what it refuses.
type quoting struct{ faithful }

func (q quoting) Check(d target.Delivery) error {
	if err := q.faithful.Check(d); err != nil {
		return fmt.Errorf("%w, in %v", err, d.Headers)
	}
	return nil
}

// laned has lanes of its own.
type laned struct {
	faithful
	lane func(target.Delivery) string
}

func (l laned) Lane(d target.Delivery) string { return l.lane(d) }

// sulking never delivers again after a failure.
type sulking struct {
	faithful
	mu     sync.Mutex
	failed error
}

func (s *sulking) Deliver(ctx context.Context, d target.Delivery) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed == nil {
		s.failed = s.faithful.Deliver(ctx, d)
	}
	return s.failed
}

// lagging keeps a delivery and makes it when the next one comes.
type lagging struct {
	faithful
	mu   sync.Mutex
	kept *target.Delivery
}

func (l *lagging) Deliver(ctx context.Context, d target.Delivery) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.kept != nil {
		_ = l.faithful.Deliver(ctx, *l.kept)
	}
	l.kept = &d
	return nil
}

// forgetful reads all answers into one buffer.
type forgetful struct {
	faithful
	buf [32]byte
}

func (f *forgetful) Deliver(ctx context.Context, d target.Delivery) error {
	err := f.faithful.Deliver(ctx, d)
	if d.Observed != nil {
		n := copy(f.buf[:], d.Observed.Response)
		d.Observed.Response = f.buf[:n]
	}
	return err
}

// singular mixes up the headers of deliveries at the same time.
type singular struct {
	faithful
	mu      sync.Mutex
	headers map[string]string
}

func (s *singular) Deliver(ctx context.Context, d target.Delivery) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.headers == nil {
		s.headers = d.Headers
	}
	d.Headers = s.headers
	return s.faithful.Deliver(ctx, d)
}

// insistent tries again by itself what failed with the text.
func insistent(f faithful, text string) target.Target {
	return deliver{f, func(ctx context.Context, d target.Delivery) error {
		err := f.Deliver(ctx, d)
		if err != nil && strings.Contains(err.Error(), text) {
			return f.Deliver(ctx, d)
		}
		return err
	}}
}

// lenient takes a failure with the text for a delivery.
func lenient(f faithful, text string) target.Target {
	return judged(f, func(_ target.Delivery, err error) error {
		if err != nil && strings.Contains(err.Error(), text) {
			return nil
		}
		return err
	})
}

// harsh never tries again what failed with the text.
func harsh(f faithful, text string) target.Target {
	return judged(f, func(_ target.Delivery, err error) error {
		if err != nil && strings.Contains(err.Error(), text) {
			return target.Permanent(err)
		}
		return err
	})
}

// softened forgets verdicts.
func softened(f faithful) target.Target {
	return judged(f, func(_ target.Delivery, err error) error {
		if err == nil {
			return nil
		}
		return errors.New(err.Error())
	})
}

// blocking hangs on a failure with the text.
func blocking(f faithful, text string) target.Target {
	return deliver{f, func(ctx context.Context, d target.Delivery) error {
		err := f.Deliver(ctx, d)
		if err != nil && strings.Contains(err.Error(), text) {
			<-ctx.Done()
		}
		return err
	}}
}

// detached does not hear of its context's end.
func detached(f faithful) target.Target {
	return deliver{f, func(ctx context.Context, d target.Delivery) error {
		d.Timeout = 3 * time.Second
		return f.Deliver(context.WithoutCancel(ctx), d)
	}}
}

// causeless does not tell why it ended.
func causeless(f faithful) target.Target { return softened(f) }

// delayed asks for another delay than the destination.
func delayed(f faithful, change func(time.Duration) time.Duration) target.Target {
	return judged(f, func(_ target.Delivery, err error) error {
		if _, after, asked := target.Judge(err); asked {
			return target.RetryAfter(err, change(after))
		}
		return err
	})
}

// judgedFirst does something before it delivers.
func judgedFirst(f faithful, first func(context.Context, target.Delivery)) target.Target {
	return deliver{f, func(ctx context.Context, d target.Delivery) error {
		first(ctx, d)
		return f.Deliver(ctx, d)
	}}
}

// telling puts a part of the delivery into its errors.
func telling(f faithful, part func(target.Delivery) string) target.Target {
	return judged(f, func(d target.Delivery, err error) error {
		if err != nil {
			return fmt.Errorf("deliver %s: %w", part(d), err)
		}
		return nil
	})
}
