package testserver

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
)

// missing says that a server cannot be started here.
type missing struct{ error }

// find returns a program: from PATH, from the folders where Debian keeps it, or from Debian's package, which it installs.
func find(what, name, debian string, folders ...string) (string, error) {
	if path := lookFor(name, folders); path != "" {
		return path, nil
	}
	if err := install(what, debian); err != nil {
		return "", &missing{fmt.Errorf("%s cannot be started: %s is not here, and %w", what, name, err)}
	}
	if path := lookFor(name, folders); path != "" {
		return path, nil
	}
	return "", &missing{fmt.Errorf("%s cannot be started: the package %s has no %s", what, debian, name)}
}

func lookFor(name string, folders []string) string {
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	for _, pattern := range folders {
		found, _ := filepath.Glob(filepath.Join(pattern, name)) // the patterns are sound
		if len(found) > 0 {
			return slices.Max(found)
		}
	}
	return ""
}

// install installs a Debian package without starting its service, for one process at a time.
func install(what, debian string) error {
	program, err := exec.LookPath("apt-get")
	if err != nil || os.Geteuid() != 0 {
		return errors.New("only root on Debian can install it; install the package " + debian)
	}
	lock, err := os.OpenFile(filepath.Join(os.TempDir(), "belfry-install.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	allow, err := forbidServices()
	if err != nil {
		return err
	}
	defer allow()
	fmt.Fprintf(os.Stderr, "testserver: installing the Debian package %s for tests with %s\n", debian, what)
	args := []string{"-o", "DPkg::Lock::Timeout=300", "install", "-y", "-q", "--no-install-recommends", debian}
	out, err := apt(program, args)
	if err == nil {
		return nil
	}
	if _, err := apt(program, []string{"-o", "DPkg::Lock::Timeout=300", "update", "-q"}); err == nil {
		if out, err = apt(program, args); err == nil {
			return nil
		}
	}
	return fmt.Errorf("apt-get failed: %w: %.500s", err, out)
}

func apt(program string, args []string) ([]byte, error) {
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	return cmd.CombinedOutput()
}

// policy is where Debian asks whether a package may start its service.
const policy = "/usr/sbin/policy-rc.d"

// forbidServices keeps packages from starting services until allow is called. A policy that is there is left alone.
func forbidServices() (allow func(), err error) {
	f, err := os.OpenFile(policy, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if errors.Is(err, os.ErrExist) {
		return func() {}, nil
	}
	if err != nil {
		return nil, err
	}
	_, err = f.WriteString("#!/bin/sh\nexit 101\n")
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	return func() { _ = os.Remove(policy) }, nil
}
