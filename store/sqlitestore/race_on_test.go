//go:build race

package sqlitestore_test

import "github.com/belfryhq/belfry/store/storetest"

// scale: under the race detector SQLite, which is Go here, is thirty times slower.
const scale = storetest.Small
