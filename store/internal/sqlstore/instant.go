package sqlstore

import (
	"database/sql"
	"time"

	"github.com/belfryhq/belfry/store"
)

// Instants are Unix milliseconds. The zero time has such a number too, and comes back from it; only where most messages
// have none is a column NULL instead.

// never is store.Never, unset the zero time.
const (
	never = 1<<53 - 1
	unset = -62135596800000
)

// ceil returns the instant that is kept for a field of a message: rounded up, so that nothing is early.
func ceil(t time.Time) int64 { return store.Ceil(t).UnixMilli() }

// floor returns the instant of a caller's now.
func floor(now time.Time) int64 { return store.Floor(now).UnixMilli() }

// instant returns what is kept as the contract's records carry it.
func instant(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

// optional returns an instant as NULL when it is not set.
func optional(t time.Time) sql.NullInt64 {
	if t.IsZero() {
		return sql.NullInt64{}
	}
	return sql.NullInt64{Int64: ceil(t), Valid: true}
}

// optionalInstant is the opposite of optional.
func optionalInstant(v sql.NullInt64) time.Time {
	if !v.Valid {
		return time.Time{}
	}
	return instant(v.Int64)
}
