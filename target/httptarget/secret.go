package httptarget

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"strings"
)

// minSecret is how many bytes a secret must have, by Standard Webhooks 1.0.
const minSecret = 24

// secretPrefix marks a secret of Standard Webhooks.
const secretPrefix = "whsec_"

// Secret is a key that signs requests. However it is printed, logged or encoded, it does not show. The zero value is no
// secret.
type Secret struct {
	key *[]byte // behind a pointer, because fmt prints fields where it does not ask Format, with %p
}

// ParseSecret reads a secret as Standard Webhooks writes it: base64 of at least 24 bytes, after whsec_ or bare. The error
// does not repeat it.
func ParseSecret(text string) (Secret, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(text, secretPrefix))
	if err != nil {
		return Secret{}, errors.New("secret: is not base64; give one like whsec_<base64 of 24 to 64 random bytes>")
	}
	if len(key) < minSecret {
		return Secret{}, fmt.Errorf("secret: has %d bytes; give at least %d random ones, in base64", len(key), minSecret)
	}
	return Secret{&key}, nil
}

const masked = "***"

// String returns ***.
func (Secret) String() string { return masked }

// Format writes *** whatever the verb.
func (Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(masked)) }

// LogValue returns ***.
func (Secret) LogValue() slog.Value { return slog.StringValue(masked) }

// MarshalText returns ***.
func (Secret) MarshalText() ([]byte, error) { return []byte(masked), nil }

// appendSignature appends the signature of a request in the scheme v1: HMAC-SHA256 over id.timestamp.payload.
func (s Secret) appendSignature(dst []byte, id, timestamp string, payload []byte) []byte {
	mac := hmac.New(sha256.New, *s.key)
	for _, part := range [...][]byte{[]byte(id), {'.'}, []byte(timestamp), {'.'}, payload} {
		mac.Write(part)
	}
	var sum [sha256.Size]byte
	dst = append(dst, "v1,"...)
	return base64.StdEncoding.AppendEncode(dst, mac.Sum(sum[:0]))
}
