// Package control lets commands find the server that has a store open. While a server holds a store that is a file, it keeps
// a control file beside it, readable by its own user alone: where it answers, its process, and a key that is good until the
// server ends.
package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// suffix is what a control file's name has after that of the store.
const suffix = ".server"

// Server is what a control file tells.
type Server struct {
	URL string `json:"url"`
	PID int    `json:"pid"`
	Key string `json:"key"`
}

// Write leaves the control file of a store, and returns what removes it again.
func Write(store string, s Server) (remove func() error, err error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	temp, err := os.CreateTemp(filepath.Dir(store), filepath.Base(store)+suffix+".*") // mode 0600
	if err != nil {
		return nil, fmt.Errorf("write the control file: %w", err)
	}
	_, err = temp.Write(append(text, '\n'))
	if err = errors.Join(err, temp.Close()); err == nil {
		err = os.Rename(temp.Name(), store+suffix)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("write the control file: %w", err), os.Remove(temp.Name()))
	}
	return func() error { return withdraw(store, s) }, nil
}

// withdraw removes the control file if it is still the one of this server.
func withdraw(store string, s Server) error {
	if now, err := read(store); err != nil || now != s {
		return err
	}
	return os.Remove(store + suffix)
}

// Find returns the server that has the store open; nil: none has. A file that a crash has left is ignored.
func Find(store string) (*Server, error) {
	s, err := read(store)
	if err != nil {
		return nil, err
	}
	if s.PID <= 0 || !alive(s.PID) {
		return nil, nil
	}
	return &s, nil
}

// read returns what the control file says; nothing when there is none.
func read(store string) (Server, error) {
	text, err := os.ReadFile(store + suffix)
	if errors.Is(err, fs.ErrNotExist) {
		return Server{}, nil
	}
	if err != nil {
		return Server{}, fmt.Errorf("find the server that has %s open: %w", store, err)
	}
	var s Server
	if err := json.Unmarshal(text, &s); err != nil {
		return Server{}, nil //nolint:nilerr // cut off by a crash: it leads nowhere
	}
	return s, nil
}
