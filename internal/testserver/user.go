package testserver

import (
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// account is a user that servers run as which refuse root; nil: the present one.
type account struct{ uid, gid uint32 }

// serviceAccount returns the first of the users that there is, if this process is root.
func serviceAccount(names ...string) *account {
	if os.Geteuid() != 0 {
		return nil
	}
	for _, name := range append(names, "nobody") {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err1 == nil && err2 == nil {
			return &account{uint32(uid), uint32(gid)}
		}
	}
	return nil
}

// own gives the account a folder.
func (a *account) own(dir string) error {
	if a == nil {
		return nil
	}
	return os.Chown(dir, int(a.uid), int(a.gid))
}

// command makes a command that runs as the account, in a folder.
func (a *account) command(dir, name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	if a != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: a.uid, Gid: a.gid}}
	}
	return cmd
}
