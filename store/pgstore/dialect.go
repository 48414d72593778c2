package pgstore

import (
	"embed"
	"io/fs"

	"github.com/belfryhq/belfry/store/internal/sqlstore"
)

//go:embed queries/*.sql
var queryFiles embed.FS

// dialect returns what PostgreSQL has of its own.
func dialect(s Settings) (sqlstore.Dialect, error) {
	queries, err := fs.Sub(queryFiles, "queries")
	return sqlstore.Dialect{
		Queries: queries, Placeholders: sqlstore.DollarNumbers, Inline: -1, Take: sqlstore.TakeByPriority,
		Fragments: map[string]string{"t": s.tables()},
	}, err
}
