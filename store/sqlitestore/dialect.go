package sqlitestore

import (
	"embed"
	"io/fs"

	"github.com/belfryhq/belfry/store/internal/sqlstore"
)

//go:embed queries/*.sql
var queryFiles embed.FS

//go:embed migrations/*.sql
var migrationFiles embed.FS

// inline is how many bytes of payload and metadata stay in a message's row. See BenchmarkInline.
const inline = 512

// dialect returns what SQLite has of its own.
func dialect() (sqlstore.Dialect, error) {
	queries, err := fs.Sub(queryFiles, "queries")
	return sqlstore.Dialect{
		Queries: queries, Placeholders: sqlstore.QuestionNumbers, Inline: inline, Take: sqlstore.TakeByPriority,
	}, err
}
