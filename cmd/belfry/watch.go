package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	v1 "github.com/belfryhq/belfry/api/v1"
	"github.com/belfryhq/belfry/cmd/belfry/internal/config"
)

// watchCommand prints a line for every message that changes.
type watchCommand struct {
	filters  `embed:""`
	Interval config.Duration `default:"1s" placeholder:"DURATION" help:"How often to look."`

	messagesCommand `embed:""`
}

// watched is how many messages are looked at: the latest ones, and those that fire next.
const watched = 500

// watchKey addresses a message that was seen.
type watchKey struct{ queue, id string }

// Run looks again and again until it is told to stop.
func (c *watchCommand) Run(ctx context.Context, m *Main, values config.Values) (err error) {
	r, err := c.dial(ctx, m, values, reading)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if r.close != nil {
		return errors.New("no server has the store open, so nothing changes; start one with belfry serve, or name one with --server")
	}
	ticker := time.NewTicker(max(time.Duration(c.Interval), 10*time.Millisecond))
	defer ticker.Stop()
	seen := map[watchKey]int64{}
	for {
		if seen, err = c.look(ctx, m, r, seen); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-m.Signals:
			return nil
		case <-ticker.C:
		}
	}
}

// look prints what is new or has changed, in the order in which it did, and returns what it saw.
func (c *watchCommand) look(ctx context.Context, m *Main, r *remote, seen map[watchKey]int64) (map[watchKey]int64, error) {
	now := map[watchKey]int64{}
	var changed []v1.Message
	for _, part := range []string{"order=created&desc=true", "order=fire_at"} {
		q := c.query()
		if part == "order=fire_at" && len(c.State) == 0 {
			q.Set("state", "scheduled,leased")
		}
		var page v1.Page
		if err := r.do(ctx, http.MethodGet, fmt.Sprintf("/api/v1/messages?%s&limit=%d&%s", q.Encode(), watched, part), nil, &page); err != nil {
			return nil, err
		}
		for _, message := range page.Messages {
			key := watchKey{message.Queue, message.ID}
			if _, twice := now[key]; !twice && seen[key] != message.Version {
				changed = append(changed, message)
			}
			now[key] = message.Version
		}
	}
	slices.SortStableFunc(changed, func(a, b v1.Message) int { return a.UpdatedAt.Compare(b.UpdatedAt) })
	for i := range changed {
		if err := c.output(m).change(&changed[i]); err != nil {
			return nil, err
		}
	}
	return now, nil
}
