package belfry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/belfryhq/belfry/store"
)

// QueueSettings are settings of a queue that hold for all workers together. They are kept in the store and take effect
// everywhere within a second or two. The zero value is that of a queue nobody has set anything for.
type QueueSettings struct {
	// Paused stops claims from the queue; accepting goes on. Note says why.
	Paused bool   `json:"paused,omitempty"`
	Note   string `json:"note,omitempty"`
	// Concurrency bounds the deliveries of the queue over all workers; zero: no bound.
	Concurrency int `json:"concurrency,omitempty"`
	// Rate bounds the deliveries per RatePer over all workers; zero: no bound. RatePer zero: one second.
	Rate    int           `json:"rate,omitempty"`
	RatePer time.Duration `json:"rate_per,omitempty"`
}

// queueDocs is the prefix of the docs that hold queue settings.
const queueDocs = "queue/"

// QueueSettings returns what is set for a queue.
func (c *Client) QueueSettings(ctx context.Context, queue string) (QueueSettings, error) {
	settings, _, err := c.queueDoc(ctx, queue)
	return settings, err
}

func (c *Client) queueDoc(ctx context.Context, queue string) (QueueSettings, int64, error) {
	doc, err := c.store.Docs().Get(ctx, queueDocs+queue)
	if errors.Is(err, ErrNotFound) {
		return QueueSettings{}, 0, nil
	}
	if err != nil {
		return QueueSettings{}, 0, err
	}
	var settings QueueSettings
	if err := json.Unmarshal(doc.Body, &settings); err != nil {
		return QueueSettings{}, 0, fmt.Errorf("settings of queue %q: %w", queue, err)
	}
	return settings, doc.Version, nil
}

// SetQueue changes the settings of a queue atomically: edit gets the present ones and changes what it likes; it runs again
// when somebody else was faster.
func (c *Client) SetQueue(ctx context.Context, queue string, edit func(*QueueSettings)) error {
	if err := checkName("queue", queue); err != nil {
		return err
	}
	for range maxConflicts {
		settings, version, err := c.queueDoc(ctx, queue)
		if err != nil {
			return err
		}
		edit(&settings)
		if err := settings.validate(); err != nil {
			return err
		}
		body, err := json.Marshal(settings)
		if err != nil {
			return err
		}
		_, err = c.store.Docs().Put(ctx, store.Doc{Name: queueDocs + queue, Version: version, Body: body})
		if !errors.Is(err, ErrConflict) {
			return err
		}
	}
	return ErrConflict
}

func (s QueueSettings) validate() error {
	switch {
	case s.Concurrency < 0:
		return invalid("concurrency", fmt.Sprint(s.Concurrency), "must be zero or more")
	case s.Rate < 0:
		return invalid("rate", fmt.Sprint(s.Rate), "must be zero or more")
	case s.RatePer < 0:
		return invalid("rate period", s.RatePer.String(), "must be zero or more")
	}
	return nil
}

// Pause stops deliveries from a queue on all workers within a second or two. What is being delivered goes on.
func (c *Client) Pause(ctx context.Context, queue, note string) error {
	return c.SetQueue(ctx, queue, func(s *QueueSettings) { s.Paused, s.Note = true, note })
}

// Resume undoes Pause.
func (c *Client) Resume(ctx context.Context, queue string) error {
	return c.SetQueue(ctx, queue, func(s *QueueSettings) { s.Paused, s.Note = false, "" })
}

// rateBurst is the span of a rate whose claims may come at once: what lets a limited queue be claimed in batches.
const rateBurst = 50 * time.Millisecond

// claimRate turns the settings into the store's terms.
func (s QueueSettings) claimRate() store.Rate {
	if s.Rate == 0 {
		return store.Rate{}
	}
	per := s.RatePer
	if per == 0 {
		per = time.Second
	}
	every := max(per/time.Duration(s.Rate), time.Microsecond)
	return store.Rate{Every: every, Burst: max(1, int(rateBurst/every))}
}
