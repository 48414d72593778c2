package natstarget

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// What a message may be in bytes: subjects have to fit a line of the protocol with other things.
const (
	MaxSubject     = 2048
	MaxHeaders     = 32
	MaxHeaderBytes = 8 << 10
)

// CheckSubject returns nil if messages can be published to the subject, and otherwise an error that says what is wrong
// and what to do.
func CheckSubject(subject string) error {
	if err := checkSubject(subject); err != nil {
		return err
	}
	if control(subject) {
		return fmt.Errorf("subject %q: it controls NATS itself; give another", clip(subject))
	}
	return nil
}

// control reports whether NATS takes what is published to the subject for a command.
func control(subject string) bool {
	first, _, _ := strings.Cut(subject, ".")
	return first == "$JS" || first == "$SYS"
}

func checkSubject(subject string) error {
	const example = "give one like events.timer"
	if subject == "" {
		return errors.New("subject: is empty; " + example)
	}
	if len(subject) > MaxSubject {
		return fmt.Errorf("subject: has %d bytes; at most %d are allowed", len(subject), MaxSubject)
	}
	for i, r := range subject {
		switch {
		case unicode.IsSpace(r), unicode.IsControl(r):
			return fmt.Errorf("subject %q: byte %d is the character %U; remove it", clip(subject), i, r)
		case r == '*', r == '>':
			return fmt.Errorf("subject %q: %c at byte %d makes it a pattern; %s", clip(subject), r, i, example)
		case r == utf8.RuneError && !strings.HasPrefix(subject[i:], string(utf8.RuneError)):
			return fmt.Errorf("subject %q: byte %d is not UTF-8; remove it", clip(subject), i)
		}
	}
	if slices.Contains(strings.Split(subject, "."), "") {
		return fmt.Errorf("subject %q: a part between full stops is empty; %s", clip(subject), example)
	}
	return nil
}

// CheckHeaders returns nil if a message may bring the headers, and otherwise an error that says which may not, why, and
// what to do. It tells no value. Names are case-sensitive in NATS.
func CheckHeaders(headers map[string]string) error {
	if len(headers) > MaxHeaders {
		return fmt.Errorf("headers: there are %d; at most %d are allowed", len(headers), MaxHeaders)
	}
	size := 0
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		if err := checkHeader(name, headers[name]); err != nil {
			return err
		}
		size += len(name) + len(headers[name])
	}
	if size > MaxHeaderBytes {
		return fmt.Errorf("headers: they have %d bytes; at most %d are allowed", size, MaxHeaderBytes)
	}
	return nil
}

// checkHeader returns nil if a message may bring the header.
func checkHeader(name, value string) error {
	if name == "" || strings.ContainsFunc(name, func(r rune) bool {
		return r <= ' ' || r > '~' || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	}) {
		return fmt.Errorf("header %q: this is no header name; use letters, digits and hyphens", clip(name))
	}
	if err := checkValue(value); err != nil {
		return fmt.Errorf("header %q: %w", clip(name), err)
	}
	return nil
}

// checkValue returns nil if a header can carry the value.
func checkValue(value string) error {
	if !utf8.ValidString(value) {
		return errors.New("the value is not UTF-8; encode it")
	}
	if at := strings.IndexFunc(value, unicode.IsControl); at >= 0 {
		return fmt.Errorf("byte %d of the value is a control character; remove it", at)
	}
	return nil
}

// clip returns the beginning of a text, for an error.
func clip(s string) string {
	const enough = 64
	if len(s) <= enough {
		return s
	}
	return s[:enough] + "…"
}
