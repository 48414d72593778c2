package sink_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/belfryhq/belfry/internal/sink"
)

func do(s *sink.Sink, method, path, body, accept string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Accept", accept)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

func TestWhatArrivesIsShown(t *testing.T) {
	var s sink.Sink
	if w := do(&s, "GET", "/_sink/a", "", ""); !strings.Contains(w.Body.String(), "Nothing has arrived") {
		t.Error(w.Body)
	}
	for i := range 105 {
		if w := do(&s, "POST", "/_sink/a", fmt.Sprintf("<b>%d</b>", i), ""); w.Code != 200 {
			t.Fatal(w.Code)
		}
	}
	do(&s, "PUT", "/_sink/b", "\xff\x00", "")
	w := do(&s, "GET", "/_sink/a", "", "application/json")
	var got struct{ Requests []sink.Request }
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if n := len(got.Requests); n != 100 || got.Requests[n-1].Body != "<b>104</b>" || got.Requests[0].Body != "<b>5</b>" {
		t.Errorf("%d requests are shown", n)
	}
	text := do(&s, "GET", "/_sink/b", "", "*/*")
	if !strings.Contains(text.Body.String(), "PUT") || !strings.Contains(text.Body.String(), "2 bytes that are no text") ||
		!strings.HasPrefix(text.Header().Get("Content-Type"), "text/plain") {
		t.Error(text.Body)
	}
	if w := do(&s, "POST", "/_sink/", "", ""); w.Code != 404 {
		t.Errorf("a sink without a name: %d", w.Code)
	}
}
