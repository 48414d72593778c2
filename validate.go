package belfry

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/belfryhq/belfry/internal/lifecycle"
	"github.com/belfryhq/belfry/store"
)

// maxName bounds queue, id, kind, target, group, parent and dedup key, in bytes.
const maxName = 255

// The instants a message may have: what RFC 3339 can write.
var (
	minInstant = time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Millisecond)
	maxInstant = time.Date(9999, 12, 31, 23, 59, 59, 999_000_000, time.UTC)
)

// prepare fills in what a message lacks and checks it.
func (c *Client) prepare(ctx context.Context, m *Message, now time.Time) error {
	if m.ID == "" {
		id, err := uuid.NewV7()
		if err != nil {
			return fmt.Errorf("make an id: %w", err)
		}
		m.ID = id.String()
	}
	if m.State == 0 {
		m.State = Scheduled
	}
	if m.DueAt.IsZero() {
		m.DueAt = m.FireAt
	}
	if m.CreatedAt.IsZero() {
		m.CreatedAt = now
	}
	m.UpdatedAt = now
	m.Retry = lifecycle.Resolve(m.Retry, c.settings.Retry)
	if c.settings.Annotate != nil {
		c.settings.Annotate(ctx, m)
	}
	return c.validate(m)
}

// validate rounds a message's instants and says what is wrong with it.
func (c *Client) validate(m *Message) error {
	for _, name := range []struct{ field, value string }{
		{"queue", m.Queue},
		{"id", m.ID},
		{"kind", m.Kind},
		{"target", m.Target},
		{"group", m.Group},
		{"parent", m.Parent},
		{"dedup key", m.DedupKey},
	} {
		if err := checkName(name.field, name.value); err != nil {
			return err
		}
	}
	if m.Queue == "" {
		return invalid("queue", "", "must not be empty")
	}
	if err := validateInstants(m); err != nil {
		return err
	}
	if err := validateTexts(m); err != nil {
		return err
	}
	if m.State == Leased || m.State > Canceled {
		return invalid("state", m.State.String(), "must be scheduled, done, dead or canceled")
	}
	if m.Timeout < 0 {
		return invalid("timeout", m.Timeout.String(), "must not be negative")
	}
	return ValidateRetry(m.Retry)
}

// ValidateRetry says what is wrong with a retry policy. A policy that leaves fields to the client's default is valid.
func ValidateRetry(policy RetryPolicy) error {
	if err := lifecycle.Validate(policy); err != nil {
		return invalid("retry policy", "", err.Error())
	}
	return nil
}

// checkName refuses what not every database can compare and keep.
func checkName(field, value string) error {
	switch {
	case len(value) > maxName:
		return invalid(field, value, fmt.Sprintf("must be at most %d bytes, not %d", maxName, len(value)))
	case !validText(value):
		return invalid(field, value, "must be valid UTF-8 without NUL")
	}
	return nil
}

func validText(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }

// validateInstants rounds the instants up to the millisecond and checks their range.
func validateInstants(m *Message) error {
	for _, at := range []struct {
		field    string
		value    *time.Time
		required bool
	}{
		{"fire time", &m.FireAt, true},
		{"due time", &m.DueAt, true},
		{"expiry", &m.ExpiresAt, false},
		{"dedup window", &m.DedupUntil, false},
	} {
		if at.value.IsZero() && !at.required {
			continue
		}
		*at.value = store.Ceil(*at.value)
		if at.value.Before(minInstant) || at.value.After(maxInstant) {
			return invalid(at.field, at.value.UTC().Format(time.RFC3339Nano), "must be within the years 1 to 9999")
		}
	}
	return nil
}

// validateTexts checks what is kept as text or as JSON.
func validateTexts(m *Message) error {
	for _, texts := range []struct {
		field string
		pairs map[string]string
	}{{"header", m.Headers}, {"param", m.Params}} {
		for name, value := range texts.pairs {
			if !validText(name) || name == "" {
				return invalid(texts.field+" name", name, "must be non-empty, valid UTF-8 without NUL")
			}
			if !validText(value) { // the value may be a secret
				return invalid(texts.field+" "+name, "", "must be valid UTF-8 without NUL")
			}
		}
	}
	for field, text := range map[string]string{"address": m.Address, "content type": m.ContentType, "last error": m.LastError} {
		if !validText(text) {
			return invalid(field, "", "must be valid UTF-8 without NUL")
		}
	}
	if m.Metadata != nil && !json.Valid(m.Metadata) {
		return invalid("metadata", "", "must be one JSON document")
	}
	return nil
}

// atPlace says which of several messages an error is about.
func atPlace(err error, i, n int) error {
	if n == 1 {
		return err
	}
	return fmt.Errorf("message %d of %d: %w", i+1, n, err)
}
