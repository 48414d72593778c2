package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	v1 "github.com/belfryhq/belfry/api/v1"
	"github.com/belfryhq/belfry/cmd/belfry/internal/config"
)

// scheduleCommand accepts a message.
type scheduleCommand struct {
	In config.Duration `placeholder:"DURATION" xor:"when" help:"Deliver after this long, such as 90s or PT1H30M; at once without it."`
	At string          `placeholder:"INSTANT" xor:"when" help:"Deliver at this instant, such as 2027-01-31T15:30:00Z."`

	HTTP string `name:"http" placeholder:"URL" xor:"where" help:"Make an HTTP request to this URL."`
	Nats string `placeholder:"SUBJECT" xor:"where" help:"Publish to this NATS subject."`
	Kind string `placeholder:"KIND" help:"What the message is about; without --http and --nats, the handler of a program that uses the library."`

	Data        string            `short:"d" placeholder:"DATA" help:"The payload; @FILE reads it from a file, @- from the standard input."`
	Header      []string          `short:"H" placeholder:"NAME: VALUE" sep:"none" help:"A header to deliver; repeat it for more."`
	ContentType string            `placeholder:"TYPE" help:"Media type of the payload; without it that of JSON if it is JSON."`
	Param       map[string]string `placeholder:"NAME=VALUE" mapsep:"none" help:"A setting of the delivery, such as method=PUT for HTTP or key=K for NATS."`
	Metadata    string            `placeholder:"JSON" help:"A document that stays with the message and is not delivered."`

	Queue     string          `default:"default" placeholder:"QUEUE" help:"The queue to wait in."`
	ID        string          `name:"id" placeholder:"ID" help:"The message's id; without it a UUIDv7."`
	Group     string          `placeholder:"LABEL" help:"A label to list messages by."`
	DedupKey  string          `placeholder:"KEY" help:"While a message with this key is live, another one is not accepted; the first one is printed."`
	Priority  int32           `placeholder:"N" help:"Lower first among due messages; 0 by default."`
	Attempts  int             `placeholder:"N" help:"How many attempts there are at most."`
	Timeout   config.Duration `placeholder:"DURATION" help:"Bound of one delivery."`
	ExpiresAt string          `placeholder:"INSTANT" help:"Do not deliver at or after this instant."`

	messagesCommand `embed:""`
}

// Run accepts the message and prints it.
func (c *scheduleCommand) Run(ctx context.Context, m *Main, values config.Values) (err error) {
	body, err := c.body(m)
	if err != nil {
		return err
	}
	r, err := c.dial(ctx, m, values, writing)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	var accepted v1.Message
	if err := r.do(ctx, http.MethodPost, "/api/v1/messages", body, &accepted); err != nil {
		return err
	}
	return c.output(m).message(&accepted)
}

// body returns the message as the API reads it.
func (c *scheduleCommand) body(m *Main) (map[string]any, error) {
	body := map[string]any{"queue": c.Queue}
	switch {
	case c.HTTP != "":
		body["target"], body["address"] = "http", c.HTTP
	case c.Nats != "":
		body["target"], body["address"] = "nats", c.Nats
	case c.Kind == "":
		return nil, &config.Error{Name: "--http, --nats, --kind", Remedy: "none is given; say where the message goes"}
	}
	if err := c.setInstants(body); err != nil {
		return nil, err
	}
	if err := c.setContent(m, body); err != nil {
		return nil, err
	}
	for name, value := range map[string]string{
		"kind": c.Kind, "id": c.ID, "group": c.Group, "dedup_key": c.DedupKey, "content_type": c.ContentType,
	} {
		if value != "" {
			body[name] = value
		}
	}
	if c.Timeout != 0 {
		body["timeout"] = c.Timeout.String()
	}
	if c.Priority != 0 {
		body["priority"] = c.Priority
	}
	if c.Attempts != 0 {
		body["max_attempts"] = c.Attempts
	}
	if len(c.Param) > 0 {
		body["params"] = c.Param
	}
	return body, nil
}

// setInstants sets when the message is delivered.
func (c *scheduleCommand) setInstants(body map[string]any) error {
	if c.In != 0 {
		body["in"] = c.In.String()
	}
	for _, at := range []struct{ flag, field, text string }{{"--at", "at", c.At}, {"--expires-at", "expires_at", c.ExpiresAt}} {
		if at.text == "" {
			continue
		}
		instant, err := time.Parse(time.RFC3339, at.text)
		if err != nil {
			return &config.Error{Name: at.flag, Value: at.text, Remedy: "give an instant such as 2027-01-31T15:30:00Z or 2027-01-31T15:30:00+01:00"}
		}
		body[at.field] = instant
	}
	return nil
}

// setContent sets payload, headers and metadata.
func (c *scheduleCommand) setContent(m *Main, body map[string]any) error {
	data, given, err := c.payload(m)
	switch {
	case err != nil:
		return err
	case !given:
	case json.Valid(data):
		body["payload"] = json.RawMessage(data)
	case utf8.Valid(data):
		body["payload_text"] = string(data)
	default:
		body["payload_base64"] = base64.StdEncoding.EncodeToString(data)
	}
	headers := map[string]string{}
	for _, header := range c.Header {
		name, value, ok := strings.Cut(header, ":")
		if !ok || strings.TrimSpace(name) == "" {
			return &config.Error{Name: "--header", Remedy: "is not \"name: value\""}
		}
		headers[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	if len(headers) > 0 {
		body["headers"] = headers
	}
	if c.Metadata == "" {
		return nil
	}
	if !json.Valid([]byte(c.Metadata)) {
		return &config.Error{Name: "--metadata", Remedy: "is not JSON"}
	}
	body["metadata"] = json.RawMessage(c.Metadata)
	return nil
}

// payload reads what --data says.
func (c *scheduleCommand) payload(m *Main) (data []byte, given bool, err error) {
	name, isFile := strings.CutPrefix(c.Data, "@")
	switch {
	case c.Data == "":
		return nil, false, nil
	case !isFile:
		return []byte(c.Data), true, nil
	case name == "-":
		data, err = io.ReadAll(m.Stdin)
	default:
		data, err = os.ReadFile(m.path(name))
	}
	if err != nil {
		return nil, false, fmt.Errorf("read the payload: %w", err)
	}
	return data, true, nil
}
