package sqlitestore

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/belfryhq/belfry/store"
	"github.com/belfryhq/belfry/store/internal/sqlstore"
)

// inspected are the settings that Inspect reads from the writer's connection.
var inspected = []string{"journal_mode", "synchronous", "page_size", "page_count", "freelist_count", "max_page_count", "cache_size"}

// Inspect reads from the connection that writes what its commits are worth.
func (s *Store) Inspect(ctx context.Context) (store.Info, error) {
	info := store.Info{Name: "sqlite"}
	err := s.writer.write(ctx, sqlstore.Load{}, func(context.Context, sqlstore.Conn) error {
		info.Details = map[string]string{"path": s.path}
		for _, name := range inspected {
			row, err := s.writer.conn.run("PRAGMA " + name)
			if err != nil {
				return err
			}
			info.Details[name] = strings.Join(row, " ")
		}
		row, err := s.writer.conn.run("SELECT sqlite_version(), (SELECT max(version_id) FROM goose_db_version)")
		if err != nil {
			return err
		}
		info.Version = row[0]
		info.Schema, err = strconv.Atoi(row[1])
		return err
	})
	if err != nil {
		return store.Info{}, fmt.Errorf("inspect %s: %w", s.path, err)
	}
	if log, err := os.Stat(s.path + "-wal"); err == nil {
		info.Details["log_bytes"] = strconv.FormatInt(log.Size(), 10)
	}
	info.Durability = durability(info.Details["journal_mode"], info.Details["synchronous"])
	return info, nil
}

// durability returns what a commit survives: a power cut if SQLite syncs at every commit, which in WAL mode only
// synchronous FULL (2) and EXTRA (3) do, in the rollback modes NORMAL almost.
func durability(journal, synchronous string) store.Durability {
	switch {
	case journal == "memory" || journal == "off":
		return store.Weak
	case synchronous == "2" || synchronous == "3":
		return store.Strict
	default:
		return store.Weak
	}
}
