package natstarget

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/belfryhq/belfry/target"
)

// The headers that a delivery adds.
const (
	headerContentType = "Content-Type"
	headerKey         = "Belfry-Key"
	headerID          = jetstream.MsgIDHeader
)

// paramKey is the parameter that names the key.
const paramKey = "key"

// message returns the delivery as NATS carries it. Nothing in it is the delivery's own. What the message may not bring is
// refused here again, because what was stored need not have been checked.
func (t *Target) message(d *target.Delivery) (*nats.Msg, error) {
	if err := t.checkSubject(d.Address); err != nil {
		return nil, err
	}
	header := make(nats.Header, len(d.Headers)+3)
	set := func(name, value string) { header[name] = []string{value} }
	set(headerID, messageID(d))
	if d.ContentType != "" {
		if err := checkValue(d.ContentType); err != nil {
			return nil, fmt.Errorf("content type: %w", err)
		}
		set(headerContentType, d.ContentType)
	}
	for name, value := range d.Headers {
		if err := checkHeader(name, value); err != nil {
			return nil, err
		}
		set(name, value)
	}
	if key, ok := d.Params[paramKey]; ok {
		if err := checkValue(key); err != nil {
			return nil, fmt.Errorf("key: %w", err)
		}
		set(headerKey, key)
	}
	return &nats.Msg{Subject: d.Address, Header: header, Data: bytes.Clone(d.Payload)}, nil
}

// checkSubject returns nil if the settings allow to publish to the subject.
func (t *Target) checkSubject(subject string) error {
	if t.settings.AllowControl {
		return checkSubject(subject)
	}
	return CheckSubject(subject)
}

// messageID returns what streams know the message by: see the package's documentation.
func messageID(d *target.Delivery) string {
	sum := sha256.New()
	var numbers [24]byte
	binary.BigEndian.PutUint64(numbers[:], uint64(d.CreatedAt.UnixMilli()))
	binary.BigEndian.PutUint64(numbers[8:], uint64(d.FireAt.UnixMilli()))
	binary.BigEndian.PutUint64(numbers[16:], uint64(len(d.Address)))
	sum.Write(numbers[:])
	_, _ = io.WriteString(sum, d.Address)
	sum.Write(d.Payload)
	var digest [sha256.Size]byte
	return escape(d.Queue) + "/" + escape(d.ID) + "/" + hex.EncodeToString(sum.Sum(digest[:0])[:8])
}

// escape returns a name in a form that a header carries, different for different names and without a slash.
func escape(name string) string {
	plain := func(c byte) bool { return c > ' ' && c <= '~' && c != '%' && c != '/' }
	if !strings.ContainsFunc(name, func(r rune) bool { return r >= utf8.RuneSelf || !plain(byte(r)) }) {
		return name
	}
	var b strings.Builder
	for i := range len(name) {
		if plain(name[i]) {
			b.WriteByte(name[i])
		} else {
			fmt.Fprintf(&b, "%%%02X", name[i])
		}
	}
	return b.String()
}

// checkParams refuses parameters that mean nothing here.
func checkParams(params map[string]string) error {
	for name, value := range params {
		if strings.HasPrefix(name, target.TracePrefix) {
			continue
		}
		if name != paramKey {
			return fmt.Errorf("param %q: is unknown; NATS has %q", clip(name), paramKey)
		}
		if err := checkValue(value); err != nil {
			return fmt.Errorf("key: %w", err)
		}
	}
	return nil
}
