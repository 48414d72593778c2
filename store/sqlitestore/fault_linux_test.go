package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/belfryhq/belfry/store"
)

// TestACommitThatFailsAnswersAllAndIsRepeatable lets the disk refuse what COMMIT writes, in a process of its own since
// the limit is one of a process.
func TestACommitThatFailsAnswersAllAndIsRepeatable(t *testing.T) {
	if output := child(t, "full", filepath.Join(t.TempDir(), "b.db")).run(t); output != "recovered\n" {
		t.Error(output)
	}
}

// fullRole runs out of room for its log, and has it again.
func fullRole(path string, out io.Writer) error {
	signal.Ignore(syscall.SIGXFSZ) // a write beyond the limit is an error then
	ctx := context.Background()
	s, err := Open(ctx, path, Settings{})
	if err != nil {
		return err
	}
	defer s.Close()
	if _, err := s.Put(ctx, start, numbered(10), 0); err != nil {
		return err
	}
	log, err := os.Stat(path + "-wal")
	if err != nil {
		return err
	}
	if err := limit(uint64(log.Size()) + 100); err != nil {
		return err
	}
	for range 3 {
		if _, err := s.Put(ctx, start, large(3), 0); err == nil {
			return errors.New("a commit without room for its log succeeded")
		}
		if err := s.Ping(ctx); err == nil {
			return errors.New("without room for a log Ping says that writes work")
		}
	}
	if err := stored(ctx, s, 10); err != nil {
		return err
	}
	if err := limit(syscall.RLIM_INFINITY & (1<<63 - 1)); err != nil {
		return err
	}
	if _, err := s.Put(ctx, start, large(3), 0); err != nil {
		return fmt.Errorf("with room again: %w", err)
	}
	if err := stored(ctx, s, 13); err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, "recovered")
	return err
}

// limit bounds the size of files that the process writes.
func limit(bytes uint64) error {
	var now syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &now); err != nil {
		return err
	}
	now.Cur = min(bytes, now.Max)
	return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &now)
}

func stored(ctx context.Context, s *Store, want int64) error {
	got, err := s.Count(ctx, store.Query{Queue: "q"})
	if err == nil && got != want {
		err = fmt.Errorf("%d messages are stored, want %d", got, want)
	}
	return err
}
