package testserver

import "syscall"

// dieWithParent makes a process end with the thread that starts it.
func dieWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }
