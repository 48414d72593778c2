package control

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func TestTheControlFileIsFoundWhileItsProcessLives(t *testing.T) {
	store := filepath.Join(t.TempDir(), "belfry.db")
	if found, err := Find(store); found != nil || err != nil {
		t.Fatalf("%v %v", found, err)
	}
	s := Server{URL: "http://127.0.0.1:1", PID: os.Getpid(), Key: "k"}
	remove, err := Write(store, s)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(store + ".server")
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	if found, err := Find(store); err != nil || found == nil || *found != s {
		t.Errorf("%v %v", found, err)
	}
	if err := remove(); err != nil {
		t.Error(err)
	}
	if found, err := Find(store); found != nil || err != nil {
		t.Errorf("%v %v", found, err)
	}
	entries, err := os.ReadDir(filepath.Dir(store))
	if err != nil || len(entries) != 0 {
		t.Errorf("left behind: %v %v", entries, err)
	}
}

func TestAFileThatACrashLeftIsIgnored(t *testing.T) {
	store := filepath.Join(t.TempDir(), "belfry.db")
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	if _, err := Write(store, Server{URL: "http://127.0.0.1:1", PID: ended.Process.Pid, Key: "k"}); err != nil {
		t.Fatal(err)
	}
	if found, err := Find(store); found != nil || err != nil {
		t.Errorf("%v %v", found, err)
	}
	if err := os.WriteFile(store+".server", []byte(`{"url":"http://127`), 0o600); err != nil {
		t.Fatal(err)
	}
	if found, err := Find(store); found != nil || err != nil {
		t.Errorf("cut off: %v %v", found, err)
	}
}

func TestAServerRemovesOnlyItsOwnFile(t *testing.T) {
	store := filepath.Join(t.TempDir(), "belfry.db")
	removeOld, err := Write(store, Server{URL: "http://127.0.0.1:1", PID: os.Getpid(), Key: "old"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Write(store, Server{URL: "http://127.0.0.1:2", PID: os.Getpid(), Key: "new"}); err != nil {
		t.Fatal(err)
	}
	if err := removeOld(); err != nil {
		t.Error(err)
	}
	if found, err := Find(store); err != nil || found == nil || found.Key != "new" {
		t.Errorf("%v %v", found, err)
	}
}
