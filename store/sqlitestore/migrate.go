package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/pressly/goose/v3"
	_ "modernc.org/sqlite" // goose works through database/sql
	"zombiezen.com/go/sqlite"
)

// ErrNewerSchema means that a newer version of the program has made the file's tables.
var ErrNewerSchema = errors.New("the file is of a newer version")

// Migration is a step from one version of the tables to the next.
type Migration struct {
	Version int64
	Name    string
	// AppliedAt is when the step was made; zero: it was not.
	AppliedAt time.Time
}

// Migrator brings the tables of a file from version to version. Open does what is needed by itself; this is for
// operators who want to see it, or to go back. While a Store has the file, Up and Down return ErrInUse.
type Migrator struct {
	path string
}

// Migrations returns the Migrator of the file at the path.
func Migrations(path string) (*Migrator, error) {
	path, err := resolve(path)
	if err != nil {
		return nil, err
	}
	return &Migrator{path}, nil
}

// Up makes every step that is missing and returns those it made.
func (m *Migrator) Up(ctx context.Context) ([]Migration, error) {
	var made []Migration
	err := m.locked(func() error {
		return withProvider(m.path, func(p *goose.Provider) error {
			results, err := p.Up(ctx)
			made = migrations(results)
			return err
		})
	})
	return made, err
}

// Down takes the last step back, with all that is in its tables. It returns the step, or nil when there was none.
func (m *Migrator) Down(ctx context.Context) (*Migration, error) {
	var made *Migration
	err := m.locked(func() error {
		return withProvider(m.path, func(p *goose.Provider) error {
			result, err := p.Down(ctx)
			if errors.Is(err, goose.ErrNoNextVersion) {
				return nil
			}
			if err == nil {
				made = &migrations([]*goose.MigrationResult{result})[0]
			}
			return err
		})
	})
	return made, err
}

// Status returns every step that this program knows, and those that it does not know but finds made. It works beside a
// Store, too.
func (m *Migrator) Status(context.Context) ([]Migration, error) {
	applied, err := appliedVersions(m.path)
	if err != nil {
		return nil, fmt.Errorf("read the versions of %s: %w", m.path, err)
	}
	var all []Migration
	known, err := knownMigrations()
	for _, k := range known {
		k.AppliedAt = applied[k.Version]
		delete(applied, k.Version)
		all = append(all, k)
	}
	for version, at := range applied {
		all = append(all, Migration{Version: version, Name: "of a newer version", AppliedAt: at})
	}
	return all, err
}

// Dump returns the SQL that makes the tables, as the steps stand in their files.
func (m *Migrator) Dump() (string, error) {
	files, err := fs.Glob(migrationFiles, "migrations/*.sql")
	if err != nil {
		return "", err
	}
	var all strings.Builder
	for _, file := range files {
		text, err := migrationFiles.ReadFile(file)
		if err != nil {
			return "", err
		}
		up, _, _ := strings.Cut(string(text), "-- +goose Down")
		all.WriteString(strings.Replace(up, "-- +goose Up\n", "", 1))
	}
	return all.String(), nil
}

// locked runs f while nobody else can open the file.
func (m *Migrator) locked(f func() error) error {
	lock, err := acquire(m.path)
	if err != nil {
		return err
	}
	err = checkNewer(m.path)
	if err == nil {
		err = f()
	}
	if err != nil {
		err = fmt.Errorf("migrate %s: %w", m.path, err)
	}
	return errors.Join(err, lock.release())
}

// migrateUp brings a locked file up to date. Where that is nothing new it only looks.
func migrateUp(ctx context.Context, path string) error {
	if err := checkNewer(path); err != nil {
		return err
	}
	current, newest, err := versions(path)
	if err != nil || current == newest {
		return err
	}
	return withProvider(path, func(p *goose.Provider) error {
		_, err := p.Up(ctx)
		return err
	})
}

// checkNewer returns ErrNewerSchema for a file with steps that this program does not know.
func checkNewer(path string) error {
	current, newest, err := versions(path)
	if err != nil || current <= newest {
		return err
	}
	return fmt.Errorf("%w: its tables have version %d, this program knows them up to version %d: run the newer program, or let it take the tables back (migrate down)",
		ErrNewerSchema, current, newest)
}

// versions returns the version of a file's tables and the newest one that there is.
func versions(path string) (current, newest int64, err error) {
	applied, err := appliedVersions(path)
	for version := range applied {
		current = max(current, version)
	}
	known, unknown := knownMigrations()
	for _, m := range known {
		newest = max(newest, m.Version)
	}
	return current, newest, errors.Join(err, unknown)
}

// knownMigrations returns the steps that the program has.
func knownMigrations() ([]Migration, error) {
	files, err := fs.Glob(migrationFiles, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	var known []Migration
	for _, file := range files {
		number, name, _ := strings.Cut(strings.TrimSuffix(path.Base(file), ".sql"), "_")
		version, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("migration %s has no version: %w", file, err)
		}
		known = append(known, Migration{Version: version, Name: name})
	}
	return known, nil
}

// appliedVersions returns when each version of a file's tables was made; none for a file that is not there or empty.
func appliedVersions(path string) (map[int64]time.Time, error) {
	applied := map[int64]time.Time{}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
		return applied, nil
	}
	if err != nil {
		return nil, err
	}
	c, err := open(path, sqlite.OpenReadWrite, "busy_timeout = 5000")
	if err != nil {
		return nil, err
	}
	err = c.readVersions(applied)
	return applied, errors.Join(err, c.close())
}

func (c *conn) readVersions(applied map[int64]time.Time) error {
	row, err := c.run("SELECT count(*) FROM sqlite_schema WHERE name = 'goose_db_version'")
	if err != nil || row[0] == "0" {
		return err
	}
	stmt, err := c.db.Prepare("SELECT version_id, unixepoch(tstamp) FROM goose_db_version WHERE is_applied AND version_id > 0")
	if err != nil {
		return err
	}
	for {
		more, err := stmt.Step()
		if err != nil || !more {
			return err
		}
		applied[stmt.ColumnInt64(0)] = time.Unix(stmt.ColumnInt64(1), 0).UTC()
	}
}

// pageSize is the size of the pages of a new file. Larger ones make what is written in order cheaper (new messages), and
// what is scattered dearer (their instants in the claim index).
const pageSize = 8192

// withProvider runs f with goose on a connection of its own.
func withProvider(path string, f func(*goose.Provider) error) error {
	uri := url.URL{Scheme: "file", OmitHost: true, Path: path}
	query := url.Values{"_pragma": {fmt.Sprintf("page_size(%d)", pageSize), "busy_timeout(5000)"}}
	db, err := sql.Open("sqlite", uri.String()+"?"+query.Encode())
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	steps, err := fs.Sub(migrationFiles, "migrations")
	if err != nil {
		return errors.Join(err, db.Close())
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, db, steps, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return errors.Join(err, db.Close())
	}
	return errors.Join(f(p), p.Close())
}

// migrations returns what goose did as this package's steps.
func migrations(results []*goose.MigrationResult) []Migration {
	var made []Migration
	for _, r := range results {
		name := strings.TrimSuffix(path.Base(r.Source.Path), ".sql")
		_, name, _ = strings.Cut(name, "_")
		made = append(made, Migration{Version: r.Source.Version, Name: name, AppliedAt: time.Now().UTC().Truncate(time.Second)})
	}
	return made
}
