package belfry

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/belfryhq/belfry/internal/lifecycle"
	"github.com/belfryhq/belfry/store"
)

// Cancel calls a message off. When it returns nil, no delivery of the message starts any more. Canceling a canceled message
// is no error. Errors: ErrNotFound, ErrInFlight (it is being delivered, or will be within a moment: see Interrupt),
// ErrFinished. The message is returned as it is, with ErrInFlight and ErrFinished too.
func (c *Client) Cancel(ctx context.Context, queue, id string) (Message, error) {
	return c.change(ctx, store.Key{Queue: queue, ID: id}, store.Swap, lifecycle.Cancel)
}

// Reschedule moves a waiting message to another instant, earlier or later. Errors: ErrNotFound, ErrInFlight, ErrFinished.
func (c *Client) Reschedule(ctx context.Context, queue, id string, at time.Time) (Message, error) {
	return c.change(ctx, store.Key{Queue: queue, ID: id}, store.Swap, func(m Message, now time.Time) (Message, error) {
		return lifecycle.Reschedule(m, at, now)
	})
}

// Revive makes a finished message wait again, with no attempts used up, to be delivered at the instant (zero: now).
// Errors: ErrNotFound, ErrDuplicate when another live message holds its dedup key; ErrLive when it is live.
func (c *Client) Revive(ctx context.Context, queue, id string, at time.Time) (Message, error) {
	return c.change(ctx, store.Key{Queue: queue, ID: id}, store.Swap, func(m Message, now time.Time) (Message, error) {
		return lifecycle.Revive(m, at, now)
	})
}

// Update changes a waiting message: edit gets it as it is stored and changes what it likes but queue, id, state, version
// and history. It is applied atomically: when somebody else changes the message meanwhile, edit runs again on the new one.
// A changed FireAt reschedules; what a changed Retry leaves out is resolved as on accept. Errors: edit's own, ErrNotFound, ErrInFlight, ErrFinished.
func (c *Client) Update(ctx context.Context, queue, id string, edit func(*Message) error) (Message, error) {
	return c.change(ctx, store.Key{Queue: queue, ID: id}, store.Swap, func(m Message, now time.Time) (Message, error) {
		return c.edited(m, now, edit)
	})
}

// edited applies an edit to a live message and checks what came of it.
func (c *Client) edited(m Message, now time.Time, edit func(*Message) error) (Message, error) {
	if m.State.Finished() {
		return m, ErrFinished
	}
	key, version, fireAt, retry := m.Key(), m.Version, m.FireAt, m.Retry
	retry.Delays = slices.Clone(retry.Delays) // edit may change it in place
	if err := edit(&m); err != nil {
		return m, err
	}
	m.Queue, m.ID, m.Version = key.Queue, key.ID, version
	if !reflect.DeepEqual(m.Retry, retry) {
		m.Retry = lifecycle.Resolve(m.Retry, c.settings.Retry)
	}
	if err := c.validate(&m); err != nil {
		return m, err
	}
	if !m.FireAt.Equal(fireAt) {
		return lifecycle.Reschedule(m, m.FireAt, now)
	}
	m.State = Scheduled
	return m, nil
}

// Remove deletes a message, live or finished, and its history. A missing message is no error; one that is being
// delivered yields ErrInFlight.
func (c *Client) Remove(ctx context.Context, queue, id string) error {
	_, err := c.change(ctx, store.Key{Queue: queue, ID: id}, store.Swap, lifecycle.Remove)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// Interrupt cancels a message even while it is being delivered: a waiting message is canceled at once; the context of a
// running delivery ends with the cause ErrCanceled within a second or two, and what the delivery comes to first counts: it
// may still succeed. Errors: ErrNotFound, ErrFinished.
func (c *Client) Interrupt(ctx context.Context, queue, id string) (Message, error) {
	for {
		m, err := c.Cancel(ctx, queue, id)
		if !errors.Is(err, ErrInFlight) {
			return m, err
		}
		errs, err := c.store.Replace(ctx, c.clock.Now(), []store.Change{{Message: m, Mode: store.Mark}})
		if err == nil {
			err = errs[0]
		}
		if !errors.Is(err, store.ErrConflict) { // a conflict: the lease has just ended
			return m, err
		}
	}
}

// maxConflicts bounds how often a change is decided anew because somebody else was faster.
const maxConflicts = 100

// change reads a message, decides, and swaps, until nobody came between.
func (c *Client) change(ctx context.Context, key store.Key, mode store.ChangeMode,
	decide func(Message, time.Time) (Message, error),
) (Message, error) {
	for range maxConflicts {
		now := c.clock.Now()
		m, err := c.store.Get(ctx, key)
		if err != nil {
			return Message{}, err
		}
		next, err := decide(m, now)
		if errors.Is(err, lifecycle.ErrUnchanged) {
			return m, nil
		}
		if err != nil {
			return m, err
		}
		errs, err := c.store.Replace(ctx, now, []store.Change{{Message: next, Mode: mode}})
		if err != nil {
			return m, fmt.Errorf("change %q in %q: %w", key.ID, key.Queue, err)
		}
		if errors.Is(errs[0], store.ErrConflict) {
			continue
		}
		if errs[0] != nil {
			return m, errs[0]
		}
		return c.changed(next, now), nil
	}
	return Message{}, ErrConflict
}

// changed completes a message that was just swapped in, and wakes whom it concerns.
func (c *Client) changed(m Message, now time.Time) Message {
	m = swapped(m, now)
	if m.State == Scheduled && m.Waits == 0 {
		c.hint([]store.QueueHint{{Queue: m.Queue, At: m.DueAt}})
	}
	return m
}

// swapped completes a message that was just swapped in.
func swapped(m Message, now time.Time) Message {
	m.Version++
	m.UpdatedAt = store.Floor(now)
	m.Owner, m.Epoch, m.Stop = "", 0, false
	switch {
	case m.State != Scheduled:
		m.VisibleAt = time.Time{}
	case m.Waits == 0:
		m.VisibleAt = m.DueAt
	}
	return m
}
