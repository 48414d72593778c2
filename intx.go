package belfry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/belfryhq/belfry/internal/lifecycle"
	"github.com/belfryhq/belfry/store"
)

// ErrNoTransactions: the client's store cannot take part in transactions of its callers.
var ErrNoTransactions = errors.New("the store takes no part in transactions")

// Tx schedules and changes messages inside a transaction of the caller's: what it did takes effect when that commits, and has
// never been when it is rolled back. It is used by one goroutine at a time, as the transaction is, and until that ends.
//
// A call that fails leaves the transaction as it was before the call. Messages that a Tx changes are locked until the
// transaction ends, so let that be soon.
type Tx struct {
	c *Client
	w store.Writer
}

// InTx returns a Tx in a transaction on the store's own database, of a kind that the store knows: with pgstore a pgx.Tx or
// a *sql.Tx. GORM, bun, ent and sqlc work on one of these. Error: ErrNoTransactions.
func (c *Client) InTx(tx any) (*Tx, error) {
	transactor, ok := store.Power[store.Transactor](c.store)
	if !ok {
		return nil, ErrNoTransactions
	}
	w, err := transactor.InTx(tx)
	if err != nil {
		return nil, err
	}
	return &Tx{c, w}, nil
}

// Schedule accepts one message as Client.Schedule does. When it returns nil the message is durable as soon as the transaction
// is.
func (t *Tx) Schedule(ctx context.Context, kind string, payload any, options ...Option) (Message, error) {
	accepted, err := t.ScheduleAll(ctx, Compose(kind, payload, options...))
	if err != nil {
		return Message{}, err
	}
	return accepted[0].Message, accepted[0].Err
}

// ScheduleAll accepts many messages as Client.ScheduleAll does.
func (t *Tx) ScheduleAll(ctx context.Context, drafts ...Draft) ([]Accepted, error) {
	messages, err := t.c.finishAll(drafts)
	if err != nil {
		return nil, err
	}
	results, err := t.Put(ctx, messages, 0)
	if err != nil {
		return nil, err
	}
	return accepted(messages, results), nil
}

// Put accepts prepared messages as Client.Put does.
func (t *Tx) Put(ctx context.Context, messages []Message, mode PutMode) ([]PutResult, error) {
	if err := t.c.prepareAll(ctx, messages); err != nil || len(messages) == 0 {
		return nil, err
	}
	results, err := t.w.Put(ctx, t.c.clock.Now(), messages, mode)
	if err != nil {
		return nil, err
	}
	return results, t.wake(ctx, hints(messages, results))
}

// Get returns a message as the transaction sees it, and locks it.
func (t *Tx) Get(ctx context.Context, queue, id string) (Message, error) {
	return t.w.Get(ctx, store.Key{Queue: queue, ID: id})
}

// Cancel calls a message off as Client.Cancel does: when the transaction commits, no delivery of it starts any more.
func (t *Tx) Cancel(ctx context.Context, queue, id string) (Message, error) {
	return t.change(ctx, store.Key{Queue: queue, ID: id}, lifecycle.Cancel)
}

// Reschedule moves a waiting message to another instant as Client.Reschedule does.
func (t *Tx) Reschedule(ctx context.Context, queue, id string, at time.Time) (Message, error) {
	return t.change(ctx, store.Key{Queue: queue, ID: id}, func(m Message, now time.Time) (Message, error) {
		return lifecycle.Reschedule(m, at, now)
	})
}

// change reads a message, which locks it, decides, and writes.
func (t *Tx) change(ctx context.Context, key store.Key, decide func(Message, time.Time) (Message, error)) (Message, error) {
	now := t.c.clock.Now()
	m, err := t.w.Get(ctx, key)
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
	errs, err := t.w.Replace(ctx, now, []store.Change{{Message: next, Mode: store.Swap}})
	if err == nil {
		err = errs[0]
	}
	if err != nil {
		return m, fmt.Errorf("change %q in %q: %w", key.ID, key.Queue, err)
	}
	next = swapped(next, now)
	if next.State != Scheduled || next.Waits > 0 {
		return next, nil
	}
	return next, t.wake(ctx, []store.QueueHint{{Queue: next.Queue, At: next.DueAt}})
}

// wake tells workers, when the transaction commits, of what falls due soon. Later instants are found by their scans.
func (t *Tx) wake(ctx context.Context, all []store.QueueHint) error {
	horizon := t.c.clock.Now().Add(wakeHorizon)
	var near []store.QueueHint
	for _, h := range all {
		if !h.At.After(horizon) {
			near = append(near, h)
		}
	}
	if len(near) == 0 {
		return nil
	}
	return t.w.Wake(ctx, near)
}
