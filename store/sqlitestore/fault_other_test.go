//go:build !linux

package sqlitestore

import (
	"errors"
	"io"
)

// fullRole needs a limit that Linux has.
func fullRole(string, io.Writer) error { return errors.New("this system has no limit to test with") }
