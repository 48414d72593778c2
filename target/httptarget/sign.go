package httptarget

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/belfryhq/belfry/target"
)

// The headers of Standard Webhooks 1.0.
const (
	headerID        = "Webhook-Id"
	headerTimestamp = "Webhook-Timestamp"
	headerSignature = "Webhook-Signature"
)

// sign adds the headers of Standard Webhooks if there is a secret: the message's id, the instant of this attempt and a
// signature for each secret.
func (t *Target) sign(ctx context.Context, h *headers, d *target.Delivery) error {
	secrets, err := t.secrets(ctx, d)
	if err != nil || len(secrets) == 0 {
		return err
	}
	id, timestamp := webhookID(d.ID), strconv.FormatInt(time.Now().Unix(), 10)
	var signatures []byte
	for i, secret := range secrets {
		if secret.key == nil {
			return errors.New("signing secret: is empty")
		}
		if i > 0 {
			signatures = append(signatures, ' ')
		}
		signatures = secret.appendSignature(signatures, id, timestamp, d.Payload)
	}
	h.set(headerID, id)
	h.set(headerTimestamp, timestamp)
	h.set(headerSignature, string(signatures))
	return nil
}

// secrets returns the secrets that sign the delivery.
func (t *Target) secrets(ctx context.Context, d *target.Delivery) ([]Secret, error) {
	if t.settings.SecretsOf == nil {
		return t.settings.Secrets, nil
	}
	secrets, err := t.settings.SecretsOf(ctx, *d)
	if err != nil {
		return nil, fmt.Errorf("signing secret: %w", err)
	}
	return secrets, nil
}

// webhookID returns a message id as Webhook-Id, different for different ids: what a header cannot carry is
// percent-encoded, and so are the percent sign itself and the full stop, which separates the parts of what is signed.
func webhookID(id string) string {
	plain := func(c byte) bool { return c > ' ' && c <= '~' && c != '%' && c != '.' }
	escaped := 0
	for i := range len(id) {
		if !plain(id[i]) {
			escaped++
		}
	}
	if escaped == 0 {
		return id
	}
	var b strings.Builder
	b.Grow(len(id) + 2*escaped)
	for i := range len(id) {
		if plain(id[i]) {
			b.WriteByte(id[i])
		} else {
			fmt.Fprintf(&b, "%%%02X", id[i])
		}
	}
	return b.String()
}
