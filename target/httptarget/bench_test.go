package httptarget_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/belfryhq/belfry/target"
	"github.com/belfryhq/belfry/target/httptarget"
)

// BenchmarkDelivery compares deliveries of 1 KB to a local server with the same requests by a bare client, one at a time
// and many at once.
func BenchmarkDelivery(b *testing.B) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, `{"ok":true}`)
	}))
	defer s.Close()
	payload := bytes.Repeat([]byte("p"), 1024)

	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 128}}
	defer client.CloseIdleConnections()
	bare := func() error {
		req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, s.URL, bytes.NewReader(payload))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		return resp.Body.Close()
	}

	tgt := newTarget(b, httptarget.Settings{Allow: loopback})
	d := target.Delivery{ID: "m", Address: s.URL, Payload: payload, Attempt: 1, Fence: 1, Headers: map[string]string{"X-One": "1"}}
	belfry := func() error {
		d := d
		d.Observed = &target.Observation{}
		return tgt.Deliver(b.Context(), d)
	}

	for _, bench := range []struct {
		name string
		do   func() error
	}{{"bare", bare}, {"belfry", belfry}} {
		b.Run(bench.name+"/1", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := bench.do(); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(bench.name+"/64", func(b *testing.B) {
			b.SetParallelism(16)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := bench.do(); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}
