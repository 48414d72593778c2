package natstarget

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"

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
		if err := checkValue("content type", d.ContentType); err != nil {
			return nil, err
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
		if err := checkValue("key", key); err != nil {
			return nil, err
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
	for _, part := range [][]byte{[]byte(d.Address), d.Payload} {
		_ = binary.Write(sum, binary.BigEndian, int64(len(part)))
		sum.Write(part)
	}
	_ = binary.Write(sum, binary.BigEndian, [2]int64{d.CreatedAt.UnixMilli(), d.FireAt.UnixMilli()})
	return escape(d.Queue) + "/" + escape(d.ID) + "/" + hex.EncodeToString(sum.Sum(nil)[:8])
}

// escape returns a name in a form that a header carries, different for different names and without a slash.
func escape(name string) string {
	plain := func(c byte) bool { return c > ' ' && c <= '~' && c != '%' && c != '/' }
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
		if name != paramKey {
			return fmt.Errorf("param %q: is unknown; NATS has %q", clip(name), paramKey)
		}
		if err := checkValue("key", value); err != nil {
			return err
		}
	}
	return nil
}
