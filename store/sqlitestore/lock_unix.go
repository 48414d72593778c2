//go:build unix && !aix && !illumos && !solaris

package sqlitestore

import (
	"errors"
	"os"
	"syscall"
)

// errLocked means that somebody else has the lock.
var errLocked = errors.New("locked")

// openLocked opens the file and locks it. flock belongs to the open file, so a second open of this process is refused
// like one of another process.
func openLocked(name string) (*os.File, error) {
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return file, nil
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = errLocked
	}
	return nil, errors.Join(err, file.Close())
}
