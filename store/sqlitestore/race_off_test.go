//go:build !race

package sqlitestore_test

import "github.com/belfryhq/belfry/store/storetest"

const scale = storetest.Normal
