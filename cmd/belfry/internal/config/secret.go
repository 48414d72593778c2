package config

import (
	"fmt"
	"log/slog"
	"strings"
)

// masked stands for a secret wherever it would be printed.
const masked = "***"

// Secret is a text that is not to be told. However it is printed, logged or encoded, it reads ***.
type Secret struct{ text string }

// NewSecret makes a secret of a text.
func NewSecret(text string) Secret { return Secret{text} }

// Reveal returns the text.
func (s Secret) Reveal() string { return s.text }

// IsZero reports whether there is no secret.
func (s Secret) IsZero() bool { return s.text == "" }

// UnmarshalText takes the text as it is.
func (s *Secret) UnmarshalText(text []byte) error {
	s.text = string(text)
	return nil
}

// Mask returns *** unless there is no secret.
func (s Secret) Mask() string {
	if s.text == "" {
		return ""
	}
	return masked
}

// String returns the mask.
func (s Secret) String() string { return s.Mask() }

// Format writes the mask whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(s.Mask())) }

// LogValue returns the mask.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.Mask()) }

// MarshalText returns the mask.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.Mask()), nil }

// Secrets are several secrets, separated by commas or blanks: those of a rotation.
type Secrets []Secret

// UnmarshalText reads the list.
func (s *Secrets) UnmarshalText(text []byte) error {
	*s = nil
	for _, field := range strings.FieldsFunc(string(text), func(r rune) bool { return r == ',' || r == ' ' }) {
		*s = append(*s, Secret{field})
	}
	return nil
}

// Mask returns *** for each.
func (s Secrets) Mask() string {
	masks := make([]string, len(s))
	for i := range s {
		masks[i] = masked
	}
	return strings.Join(masks, ",")
}

// Address is a URL that may contain a password. Printed, the password and the query read ***.
type Address string

// UnmarshalText takes the text as it is; whoever uses the address checks it.
func (a *Address) UnmarshalText(text []byte) error {
	*a = Address(strings.TrimSpace(string(text)))
	return nil
}

// Mask returns the address without what may be secret in it.
func (a Address) Mask() string {
	scheme, rest, ok := strings.Cut(string(a), "://")
	if ok {
		scheme += "://"
	} else {
		scheme, rest = "", string(a)
	}
	rest, _, hasQuery := strings.Cut(rest, "?")
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		user, _, hasPassword := strings.Cut(rest[:at], ":")
		if hasPassword {
			user += ":" + masked
		}
		rest = user + rest[at:]
	}
	if hasQuery {
		rest += "?" + masked
	}
	return scheme + rest
}

// String returns the mask.
func (a Address) String() string { return a.Mask() }

// LogValue returns the mask.
func (a Address) LogValue() slog.Value { return slog.StringValue(a.Mask()) }
