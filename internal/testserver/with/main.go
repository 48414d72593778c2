// Command with runs a command beside one throwaway server of each kind, named by the environment variables that package
// testserver reads, and stops the servers after it:
//
//	go run ./internal/testserver/with go test ./...
//
// With -durable as the first argument the servers keep what they acknowledge through a power cut, for measurements.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/belfryhq/belfry/internal/testserver"
)

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	durable := len(args) > 0 && args[0] == "-durable"
	if durable {
		args = args[1:]
	}
	if len(args) == 0 {
		fmt.Fprintln(os.Stderr, "with: name a command to run")
		return 2
	}
	failed := false
	defer testserver.StopAll()
	variables := testserver.StartAll(durable, func(err error) {
		fmt.Fprintln(os.Stderr, "with:", err)
		failed = true
	})
	if failed && testserver.Required() {
		return 1
	}
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt, syscall.SIGTERM) // the command gets them too
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), variables...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return max(exit.ExitCode(), 1)
	default:
		fmt.Fprintln(os.Stderr, "with:", err)
		return 1
	}
}
