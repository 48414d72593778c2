package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/belfryhq/belfry/cmd/belfry/internal/control"
)

func TestMain(m *testing.M) {
	testscript.Main(stopping{m}, map[string]func(){"belfry": main})
}

// The scripts start the real program, one process each time.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("API_KEY", apiKey)
			env.Setenv("PORT", "0")
			env.Setenv("GORACE", "atexit_sleep_ms=0") // else each process sleeps a second before it ends
			return os.WriteFile(filepath.Join(env.WorkDir, "payload.bin"), []byte{0xff}, 0o600)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){"await": await, "terminate": terminate},
	})
}

// await waits until the control file of a store leads to a server: it is written once that listens.
func await(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: await STORE")
	}
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) {
		server, err := control.Find(ts.MkAbs(args[0]))
		ts.Check(err)
		if server != nil {
			return
		}
		time.Sleep(5 * time.Millisecond) // another process makes it
	}
	ts.Fatalf("no server has opened %s", args[0])
}

// terminate sends SIGTERM to the server that a control file tells of.
func terminate(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: terminate FILE")
	}
	var server control.Server
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &server))
	ts.Check(syscall.Kill(server.PID, syscall.SIGTERM))
}
