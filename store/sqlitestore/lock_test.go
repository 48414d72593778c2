package sqlitestore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestAFileIsOpenedOnce(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "b.db"), filepath.Join(dir, "link.db")
	s := openTest(t, path)
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	for _, name := range []string{path, "b.db", link, filepath.Join(dir, ".", "b.db")} {
		_, err := Open(t.Context(), name, Settings{})
		if !errors.Is(err, ErrInUse) {
			t.Fatalf("a second Open of %s gave %v", name, err)
		}
		if text := err.Error(); !strings.Contains(text, "this process") || !strings.Contains(text, path) {
			t.Errorf("the error names neither holder nor file: %s", text)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	openTest(t, link)
}

func TestAnotherProcessIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "b.db")
	s := openTest(t, path)
	output := child(t, "open", path).run(t)
	if want := fmt.Sprintf("process %d has %s open", os.Getpid(), path); !strings.Contains(output, want) {
		t.Errorf("another process was told %q, want %q in it", output, want)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if output := child(t, "open", path).run(t); output != "opened\n" {
		t.Errorf("after Close another process was told %q", output)
	}
}

func TestAStoreNeedsAFile(t *testing.T) {
	for _, path := range []string{"", ":memory:", "file::memory:?cache=shared"} {
		if _, err := Open(t.Context(), path, Settings{}); err == nil || !strings.Contains(err.Error(), "memory store") {
			t.Errorf("Open(%q) gave %v", path, err)
		}
	}
	if _, err := Open(t.Context(), filepath.Join(t.TempDir(), "missing", "b.db"), Settings{}); err == nil {
		t.Error("Open in a folder that is not there gave no error")
	}
}

func TestOnlyTheOwnerReadsANewFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // permissions are the folder's there
	}
	path := filepath.Join(t.TempDir(), "belfry.db")
	s := openTest(t, path)
	if err := s.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, path + "-wal"} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has the permissions %v", name, info.Mode().Perm())
		}
	}
}
