package lifecycle

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/belfryhq/belfry/target"
)

const (
	// maxError bounds the text of an error, in bytes.
	maxError = 2 << 10
	// maxResponse bounds what is kept of a target's answer, in bytes.
	maxResponse = 16 << 10
)

// verdict is what an error of a target means, read once.
type verdict struct {
	kind  target.Verdict
	after time.Duration
	asked bool
	text  string // fit to be stored; not empty unless delivered
}

// judge reads an error. One whose methods panic, such as a nil pointer in an error interface, is a plain failure: a
// handler's mistake must not end the process that settles it.
func judge(err error) (v verdict) {
	if err == nil {
		return verdict{kind: target.Delivered}
	}
	defer func() {
		if recover() != nil {
			v = verdict{kind: target.Retry, text: "an error whose text cannot be read"}
		}
	}()
	v.kind, v.after, v.asked = target.Judge(err)
	v.text = orElse(clean(err.Error(), maxError), "an error without text")
	return v
}

// withReason appends a reason to an error's text, within the bound.
func withReason(text, reason string) string {
	if reason == "" {
		return text
	}
	return cut(text, maxError-len(reason)-2) + "; " + reason
}

// clean makes a text that every store keeps as it is: valid UTF-8 without NUL, at most limit bytes. It looks at no more
// of the text than it keeps.
func clean(text string, limit int) string {
	text = strings.ReplaceAll(cut(text, limit), "\x00", "")
	return cut(strings.ToValidUTF8(text, string(utf8.RuneError)), limit)
}

// cut shortens a text to at most limit bytes without splitting a character.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	end := limit
	for end > limit-utf8.UTFMax && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}

func orElse(text, fallback string) string {
	if text == "" {
		return fallback
	}
	return text
}
