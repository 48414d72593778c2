package target_test

import (
	"context"
	"errors"
	"testing"

	"github.com/belfryhq/belfry/target"
)

func TestFuncIsATarget(t *testing.T) {
	t.Parallel()
	want := errors.New("refused")
	var got target.Delivery
	f := target.Func(func(_ context.Context, d target.Delivery) error { got = d; return want })
	if err := f.Deliver(t.Context(), target.Delivery{ID: "m1"}); !errors.Is(err, want) {
		t.Errorf("Deliver returned %v, want %v", err, want)
	}
	if got.ID != "m1" {
		t.Errorf("the function received %q", got.ID)
	}
}

func TestObserveRecordsWithAnObservationAndIsSilentWithout(t *testing.T) {
	t.Parallel()
	var none target.Delivery
	none.Observe(500, []byte("lost"))

	seen := target.Delivery{Observed: &target.Observation{}}
	seen.Observe(503, []byte("busy"))
	if seen.Observed.Status != 503 || string(seen.Observed.Response) != "busy" {
		t.Errorf("observed %d %q, want 503 busy", seen.Observed.Status, seen.Observed.Response)
	}
}
