package sqlitestore

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/belfryhq/belfry/store"
)

// Some tests need another process: the test's own program, started with a role.
const roleVariable, pathVariable = "BELFRY_TEST_ROLE", "BELFRY_TEST_PATH"

// roles are what such a process does with the file, telling about it on standard output.
var roles = map[string]func(path string, out io.Writer) error{
	"open": openRole,
	"load": loadRole,
	"full": fullRole,
}

func TestMain(m *testing.M) {
	role, ok := roles[os.Getenv(roleVariable)]
	if !ok {
		os.Exit(m.Run())
	}
	if err := role(os.Getenv(pathVariable), os.Stdout); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}

// process is another process of the test's program.
type process struct{ *exec.Cmd }

func child(t *testing.T, role, path string) process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVariable+"="+role, pathVariable+"="+path)
	cmd.Stderr = os.Stderr
	return process{cmd}
}

// run waits for the process and returns what it told.
func (p process) run(t *testing.T) string {
	t.Helper()
	out, err := p.Output()
	if _, failed := err.(*exec.ExitError); err != nil && !failed {
		t.Fatal(err)
	}
	return string(out)
}

// killed runs the process, kills it after some lines and returns all it told until then.
func (p process) killed(t *testing.T, after int) []string {
	t.Helper()
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	var lines []string
	scanner := bufio.NewScanner(out)
	for scanner.Scan() {
		lines = append(lines, scanner.Text())
		if len(lines) == after {
			if err := p.Process.Kill(); err != nil {
				t.Error(err)
			}
		}
	}
	_ = p.Wait() // it was killed
	if len(lines) < after {
		t.Fatalf("the process ended by itself: %q", lines)
	}
	return lines
}

func openRole(path string, out io.Writer) error {
	s, err := Open(context.Background(), path, Settings{})
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "opened")
	return s.Close()
}

// loadRole puts, claims and settles for ever, and tells what was acknowledged.
func loadRole(path string, out io.Writer) error {
	ctx := context.Background()
	s, err := Open(ctx, path, Settings{Log: 1 << 20}) // so that it is killed in checkpoints, too
	if err != nil {
		return err
	}
	var lock sync.Mutex
	tell := func(what string, ids []string) {
		lock.Lock()
		defer lock.Unlock()
		for _, id := range ids {
			fmt.Fprintln(out, what, id)
		}
	}
	failed := make(chan error)
	for range 4 {
		go func() {
			for {
				if err := loadPut(ctx, s, tell); err != nil {
					failed <- err
				}
			}
		}()
	}
	for range 2 {
		go func() {
			for {
				if err := loadSettle(ctx, s, tell); err != nil {
					failed <- err
				}
			}
		}()
	}
	return <-failed
}

// loadPut puts some messages.
func loadPut(ctx context.Context, s *Store, tell func(string, []string)) error {
	var ids []string
	messages := numbered(7)
	for i := range messages {
		messages[i].ID, messages[i].Payload = uuid.NewString(), make([]byte, 300*i)
		ids = append(ids, messages[i].ID)
	}
	results, err := s.Put(ctx, start, messages, 0)
	for _, r := range results {
		if err == nil {
			err = r.Err
		}
	}
	if err == nil {
		tell("put", ids)
	}
	return err
}

// loadSettle claims some messages and finishes them: one half is kept, the other removed.
func loadSettle(ctx context.Context, s *Store, tell func(string, []string)) error {
	claimed, err := s.Claim(ctx, store.Claim{
		Now: start, Until: start.Add(time.Minute), Queues: []store.QueueClaim{{Queue: "q", Limit: 5}},
	})
	if err != nil || len(claimed.Messages) == 0 {
		return err
	}
	var settlements []store.Settlement
	var kept, removed []string
	for i, m := range claimed.Messages {
		settlement := store.Settlement{Token: m.Token(), Outcome: store.OutcomeDone, PurgeAt: store.Never}
		if i%2 == 0 {
			settlement.PurgeAt = time.Time{}
			removed = append(removed, m.ID)
		} else {
			kept = append(kept, m.ID)
		}
		settlements = append(settlements, settlement)
	}
	results, err := s.Settle(ctx, start, settlements)
	for _, refused := range results {
		if err == nil {
			err = refused
		}
	}
	if err == nil {
		tell("kept", kept)
		tell("removed", removed)
	}
	return err
}
