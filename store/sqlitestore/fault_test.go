package sqlitestore

import (
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/belfryhq/belfry/store"
)

// large returns messages that do not fit the room that is left in a file.
func large(n int) []store.Message {
	messages := numbered(n)
	for i := range messages {
		messages[i].ID = "large" + strconv.Itoa(i)
		messages[i].Payload = make([]byte, 64<<10)
	}
	return messages
}

func TestAFullFileLosesNothingAndRecovers(t *testing.T) {
	s := openTest(t, filepath.Join(t.TempDir(), "b.db"))
	put(t, s, numbered(50)...)
	held := claim(t, s, 10)
	pages, err := strconv.Atoi(runIn(t, s, "PRAGMA page_count")[0])
	if err != nil {
		t.Fatal(err)
	}
	runIn(t, s, "PRAGMA max_page_count = "+strconv.Itoa(pages+4))
	for range 3 {
		_, err := s.Put(t.Context(), start, large(20), 0)
		if sqlite.ErrCode(err) != sqlite.ResultFull {
			t.Fatalf("Put into a full file gave %v", err)
		}
	}
	if got := count(t, s); got != 50 {
		t.Errorf("%d messages are stored, want the 50 from before", got)
	}
	if got := count(t, s, store.Leased); got != 10 {
		t.Errorf("%d messages are leased, want the 10 from before", got)
	}
	// What needs no room works on.
	results, err := s.Settle(t.Context(), start, []store.Settlement{{Token: held[0].Token(), Outcome: store.OutcomeDone}})
	if err != nil || results[0] != nil {
		t.Errorf("Settle in a full file gave %v, %v", results, err)
	}
	runIn(t, s, "PRAGMA max_page_count = 1000000")
	put(t, s, large(20)...)
	if got := count(t, s); got != 69 {
		t.Errorf("with room again %d messages are stored, want 69", got)
	}
	if row := runIn(t, s, "PRAGMA integrity_check"); row[0] != "ok" {
		t.Errorf("the file is damaged: %v", row)
	}
}

func TestAFileThatAnotherProgramHoldsIsAnErrorForAWhile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "b.db")
	s, err := Open(t.Context(), path, Settings{BusyTimeout: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	other, err := open(path, sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer other.close()
	if _, err := other.run("BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(t.Context(), start, numbered(1), 0); sqlite.ErrCode(err) != sqlite.ResultBusy {
		t.Errorf("Put gave %v", err)
	}
	if err := s.Ping(t.Context()); err == nil {
		t.Error("Ping says that writes work")
	}
	if got := count(t, s); got != 0 { // reads do
		t.Errorf("%d messages are stored", got)
	}
	if _, err := other.run("ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if err := s.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	put(t, s, numbered(1)...)
}
