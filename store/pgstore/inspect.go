package pgstore

import (
	"context"
	"fmt"

	"github.com/belfryhq/belfry/store"
)

// Inspect reads what the server's commits are worth.
func (s *Store) Inspect(ctx context.Context) (store.Info, error) {
	leave, err := s.db.enter()
	if err != nil {
		return store.Info{}, err
	}
	defer leave()
	info := store.Info{Name: "postgresql", Details: map[string]string{}}
	err = s.inspect(ctx, &info)
	if err != nil {
		return store.Info{}, fmt.Errorf("inspect: %w", err)
	}
	info.Durability = durability(info.Details)
	return info, nil
}

func (s *Store) inspect(ctx context.Context, info *store.Info) error {
	rows, err := s.pool.Query(ctx, `SELECT name, setting FROM pg_settings WHERE name IN
		('server_version', 'fsync', 'full_page_writes', 'synchronous_commit', 'synchronous_standby_names', 'wal_level', 'max_connections')`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return err
		}
		info.Details[name] = value
	}
	if err := rows.Err(); err != nil {
		return err
	}
	info.Version = info.Details["server_version"]
	delete(info.Details, "server_version")
	info.Details["schema"], info.Details["prefix"] = s.settings.Schema, s.settings.Prefix
	return s.pool.QueryRow(ctx, "SELECT max(version_id) FROM "+s.settings.tables()+"migrations WHERE is_applied").Scan(&info.Schema)
}

// durability returns what a commit survives: a power cut if the server waits for its own disk and writes whole pages. What a
// standby that is not synchronous has not got is lost with the primary all the same.
func durability(settings map[string]string) store.Durability {
	if settings["fsync"] == "on" && settings["full_page_writes"] == "on" && settings["synchronous_commit"] != "off" {
		return store.Strict
	}
	return store.Weak
}
