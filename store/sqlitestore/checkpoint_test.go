package sqlitestore

import (
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
)

func TestTheLogStaysBoundedUnderLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "b.db")
	const bound = 1 << 20
	s, err := Open(t.Context(), path, Settings{Log: bound})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var writers sync.WaitGroup
	for w := range 2 {
		writers.Go(func() {
			for i := range 40 {
				messages := large(4)
				for j := range messages {
					messages[j].ID = strconv.Itoa(w) + "/" + strconv.Itoa(i) + "/" + strconv.Itoa(j)
				}
				put(t, s, messages...)
			}
		})
	}
	writers.Wait() // 20 MB
	info, err := os.Stat(path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > 3*bound {
		t.Errorf("the log is %d bytes long, its bound is %d", info.Size(), bound)
	}
	if got := count(t, s); got != 320 {
		t.Errorf("%d messages are stored, want 320", got)
	}
}
