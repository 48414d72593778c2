package dispatch

import (
	"context"
	"errors"
	"sync"
	"time"
)

// deliveryContext is the context of one delivery: canceled with a cause, with a deadline that can be moved.
type deliveryContext struct {
	context.Context
	cancel context.CancelCauseFunc

	mu       sync.Mutex
	deadline time.Time   // zero: none
	timer    *time.Timer // nil: no deadline
}

// newDeliveryContext makes a context that ends after the timeout; zero: only when it is canceled.
func newDeliveryContext(timeout time.Duration) (*deliveryContext, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(context.Background())
	c := &deliveryContext{Context: ctx, cancel: cancel}
	if timeout > 0 {
		c.extend(timeout)
	}
	return c, func(cause error) {
		cancel(cause)
		c.stop()
	}
}

// extend moves the deadline to d from now.
func (c *deliveryContext) extend(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.Context.Err() != nil {
		return
	}
	c.deadline = time.Now().Add(d)
	if c.timer == nil {
		c.timer = time.AfterFunc(d, func() { c.cancel(context.DeadlineExceeded) })
		return
	}
	c.timer.Reset(d)
}

func (c *deliveryContext) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timer != nil {
		c.timer.Stop()
	}
}

// Deadline returns the present deadline.
func (c *deliveryContext) Deadline() (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.deadline, !c.deadline.IsZero()
}

// Err tells a passed deadline from a cancellation, as contexts with a fixed deadline do.
func (c *deliveryContext) Err() error {
	err := c.Context.Err()
	if err != nil && errors.Is(context.Cause(c.Context), context.DeadlineExceeded) {
		return context.DeadlineExceeded
	}
	return err
}
