package sqlitestore

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"zombiezen.com/go/sqlite"
)

// migrator returns the Migrator of a new file.
func migrator(t *testing.T) *Migrator {
	t.Helper()
	m, err := Migrations(filepath.Join(t.TempDir(), "b #1?.db")) // a name that is not a URL
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// applied returns the versions that the file has.
func applied(t *testing.T, m *Migrator) []int64 {
	t.Helper()
	all, err := m.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var versions []int64
	for _, step := range all {
		if !step.AppliedAt.IsZero() {
			versions = append(versions, step.Version)
		}
	}
	return versions
}

func TestTablesGoUpAndDown(t *testing.T) {
	m := migrator(t)
	if got := applied(t, m); len(got) != 0 {
		t.Errorf("a file that is not there has the versions %v", got)
	}
	for round := range 2 {
		made, err := m.Up(t.Context())
		if err != nil || len(made) != 1 || made[0].Name != "messages" {
			t.Fatalf("round %d: Up made %v, %v", round, made, err)
		}
		if made, err = m.Up(t.Context()); err != nil || len(made) != 0 {
			t.Errorf("round %d: Up once more made %v, %v", round, made, err)
		}
		s := openTest(t, m.path)
		put(t, s, numbered(1)...)
		if got := applied(t, m); len(got) != 1 { // beside the store
			t.Errorf("round %d: the file has the versions %v", round, got)
		}
		if _, err := m.Up(t.Context()); !errors.Is(err, ErrInUse) {
			t.Errorf("round %d: Up of an open file gave %v", round, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if down, err := m.Down(t.Context()); err != nil || down == nil || down.Version != 1 {
			t.Fatalf("round %d: Down made %v, %v", round, down, err)
		}
		if down, err := m.Down(t.Context()); err != nil || down != nil {
			t.Errorf("round %d: Down once more made %v, %v", round, down, err)
		}
	}
}

func TestAFileOfANewerVersionIsRefused(t *testing.T) {
	m := migrator(t)
	if _, err := m.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	c, err := open(m.path, sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.run("INSERT INTO goose_db_version (version_id, is_applied) VALUES (17, 1)"); err != nil {
		t.Fatal(err)
	}
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
	_, opened := Open(t.Context(), m.path, Settings{})
	_, up := m.Up(t.Context())
	_, down := m.Down(t.Context())
	for what, err := range map[string]error{"Open": opened, "Up": up, "Down": down} {
		if !errors.Is(err, ErrNewerSchema) {
			t.Errorf("%s gave %v", what, err)
			continue
		}
		for _, part := range []string{"version 17", "version 1:", "newer program"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %q does not say %q", what, err, part)
			}
		}
	}
	if got := applied(t, m); len(got) != 2 {
		t.Errorf("Status shows the versions %v", got)
	}
}

func TestAFileThatIsNotADatabaseIsRefused(t *testing.T) {
	m := migrator(t)
	writeFile(t, m.path, strings.Repeat("not a database ", 1000))
	if _, err := Open(t.Context(), m.path, Settings{}); err == nil || !strings.Contains(err.Error(), m.path) {
		t.Errorf("Open gave %v", err)
	}
}
