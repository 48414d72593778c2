package main

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"

	v1 "github.com/belfryhq/belfry/api/v1"
	"github.com/belfryhq/belfry/cmd/belfry/internal/config"
)

// filters select messages.
type filters struct {
	Queue  string   `placeholder:"QUEUE" help:"Only of this queue."`
	Prefix string   `placeholder:"PREFIX" help:"Only of queues whose names begin so."`
	State  []string `placeholder:"STATE" help:"Only in these states: scheduled, leased, done, dead, canceled."`
	Kind   string   `placeholder:"KIND" help:"Only of this kind."`
	Group  string   `placeholder:"LABEL" help:"Only with this label."`
}

// query returns the filters as the API reads them.
func (f *filters) query() url.Values {
	q := url.Values{}
	for name, value := range map[string]string{"queue": f.Queue, "prefix": f.Prefix, "kind": f.Kind, "group": f.Group} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if len(f.State) > 0 {
		states := ""
		for i, s := range f.State {
			if i > 0 {
				states += ","
			}
			states += s
		}
		q.Set("state", states)
	}
	return q
}

// listCommand lists messages.
type listCommand struct {
	filters `embed:""`
	Order   string `enum:"created,fire_at,finished" default:"created" placeholder:"KEY" help:"created, fire_at or finished (which lists finished ones only)."`
	Desc    bool   `default:"true" negatable:"" help:"The latest first."`
	Limit   int    `default:"50" placeholder:"N" help:"How many, up to 1000."`
	Offset  int    `placeholder:"N" help:"Skip so many."`
	Cursor  string `placeholder:"CURSOR" help:"Go on where an earlier list ended."`

	messagesCommand `embed:""`
}

// Run prints a page.
func (c *listCommand) Run(ctx context.Context, m *Main, values config.Values) (err error) {
	r, err := c.dial(ctx, m, values, reading)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	q := c.query()
	q.Set("order", c.Order)
	q.Set("desc", strconv.FormatBool(c.Desc))
	q.Set("limit", strconv.Itoa(c.Limit))
	if c.Offset != 0 {
		q.Set("offset", strconv.Itoa(c.Offset))
	}
	if c.Cursor != "" {
		q.Set("cursor", c.Cursor)
	}
	var page v1.Page
	if err := r.do(ctx, http.MethodGet, "/api/v1/messages?"+q.Encode(), nil, &page); err != nil {
		return err
	}
	return c.output(m).page(&page)
}

// address names one message.
type address struct {
	Queue string `arg:"" help:"The message's queue."`
	ID    string `arg:"" help:"The message's id."`
}

// getCommand shows a message.
type getCommand struct {
	address         `embed:""`
	messagesCommand `embed:""`
}

// Run prints the message.
func (c *getCommand) Run(ctx context.Context, m *Main, values config.Values) (err error) {
	r, err := c.dial(ctx, m, values, reading)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	var got v1.Message
	if err := r.do(ctx, http.MethodGet, messagePath(c.Queue, c.ID), nil, &got); err != nil {
		return err
	}
	return c.output(m).message(&got)
}

// cancelCommand calls a message off.
type cancelCommand struct {
	address   `embed:""`
	Interrupt bool `help:"Even while it is being delivered: the delivery is asked to stop, and what it comes to first counts."`

	messagesCommand `embed:""`
}

// Run cancels the message and prints it.
func (c *cancelCommand) Run(ctx context.Context, m *Main, values config.Values) (err error) {
	r, err := c.dial(ctx, m, values, reading)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	path := messagePath(c.Queue, c.ID)
	if c.Interrupt {
		path += "?interrupt=true"
	}
	var canceled v1.Message
	if err := r.do(ctx, http.MethodDelete, path, nil, &canceled); err != nil {
		return err
	}
	return c.output(m).message(&canceled)
}
