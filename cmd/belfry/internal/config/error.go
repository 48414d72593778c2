package config

import (
	"errors"
	"fmt"
)

// Error is one wrong value: where it was set, what it is, and what would be right.
type Error struct {
	Name   string // a flag, a variable, a file and its key; empty where the caller knows
	Value  string // empty where it must not be told
	Remedy string
}

// Error returns all three in one line.
func (e *Error) Error() string {
	text := e.Remedy
	if e.Value != "" {
		text = fmt.Sprintf("%q: %s", shortened(e.Value), e.Remedy)
	}
	if e.Name == "" {
		return text
	}
	return e.Name + ": " + text
}

// shortened returns as much of a value as fits a line.
func shortened(value string) string {
	const most = 80
	if len(value) <= most {
		return value
	}
	return value[:most] + "…"
}

// wrong makes an Error of a value whose place the caller will add.
func wrong(value, format string, args ...any) error {
	return &Error{Value: value, Remedy: fmt.Sprintf(format, args...)}
}

// named returns the error of a value with the place where it was set, and without the value if that is a secret.
func named(err error, name, value string, secret bool) error {
	e := &Error{Value: value, Remedy: err.Error()}
	if known := (*Error)(nil); errors.As(err, &known) {
		*e = *known
	}
	e.Name = name
	if secret {
		e.Value = ""
	}
	return e
}
