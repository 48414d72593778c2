package httptarget

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/belfryhq/belfry/target"
)

func TestAnAnswerWithoutEndHoldsADeliveryOnlyForAWhile(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("event: 1\n\n"))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(s.Close)
	tgt, err := New(Settings{AllowPrivate: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tgt.Close() })
	tgt.bodyTimeout = 50 * time.Millisecond
	d := target.Delivery{Address: s.URL, Timeout: time.Hour, Observed: &target.Observation{}}
	if err := tgt.Deliver(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	if got := string(d.Observed.Response); got != "event: 1\n\n" {
		t.Errorf("what was observed is %q", got)
	}
}
