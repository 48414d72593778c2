//go:build !linux

package testserver

import "syscall"

// dieWithParent needs Linux: elsewhere a test process that is killed leaves its servers behind.
func dieWithParent(*syscall.SysProcAttr) {}
