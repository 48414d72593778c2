package belfry_test

import (
	"errors"
	"testing"

	"github.com/belfryhq/belfry"
	"github.com/belfryhq/belfry/store/memstore"
)

func TestAStoreWithoutTransactionsSaysSo(t *testing.T) {
	client := belfry.New(memstore.New(), belfry.Settings{})
	defer client.Close()
	if _, err := client.InTx(struct{}{}); !errors.Is(err, belfry.ErrNoTransactions) {
		t.Errorf("InTx: %v", err)
	}
}
