package sqlitestore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ErrInUse means that another process, or another Open of this one, has the file.
var ErrInUse = errors.New("the file is in use")

// lock is the right to a file. It is a lock of the operating system on a file beside it, which ends with the process
// however that ends. The side file stays: to remove it would let two processes lock two files of one name.
type lock struct {
	file *os.File
}

// acquire takes the lock for the database at the path, or returns ErrInUse with who has it.
func acquire(path string) (*lock, error) {
	name := path + ".lock"
	file, err := openLocked(name)
	if errors.Is(err, errLocked) {
		return nil, inUse(path, name)
	}
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", name, err)
	}
	// The process id is for people; the lock does not depend on it.
	pid := strconv.Itoa(os.Getpid()) + "\n"
	if err := errors.Join(file.Truncate(0), writeAt(file, pid)); err != nil {
		return nil, errors.Join(fmt.Errorf("write %s: %w", name, err), file.Close())
	}
	return &lock{file}, nil
}

func writeAt(file *os.File, text string) error {
	_, err := file.WriteAt([]byte(text), 0)
	return err
}

// inUse tells who has the file and what to do.
func inUse(path, name string) error {
	holder := "another process"
	if text, err := os.ReadFile(name); err == nil {
		if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
			holder = fmt.Sprintf("process %d", pid)
			if pid == os.Getpid() {
				holder = "this process"
			}
		}
	}
	return fmt.Errorf("%w: %s has %s open; one process at a time can use a SQLite store: stop that one, send it the request, or choose another file",
		ErrInUse, holder, path)
}

// release gives the file up.
func (l *lock) release() error { return l.file.Close() }

// resolve returns the path by which every process calls the file.
func resolve(path string) (string, error) {
	if path == "" || strings.Contains(path, ":memory:") {
		return "", fmt.Errorf("open %q: a SQLite store needs the name of a file; for one that is gone with the process use the memory store", path)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		return target, nil
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return "", fmt.Errorf("open %s: %w", path, err)
	}
	return filepath.Join(dir, filepath.Base(path)), nil
}
