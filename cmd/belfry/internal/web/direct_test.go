package web

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestDirectAnswersAsOverTheNetwork(t *testing.T) {
	client := http.Client{Transport: Direct(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if r.Method == http.MethodDelete {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		w.Header().Set("X-Path", r.URL.Path)
		w.WriteHeader(http.StatusAccepted)
		w.WriteHeader(http.StatusTeapot)
		_, _ = w.Write(body)
	}))}
	resp, err := client.Post("http://store/a%2Fb", "text/plain", strings.NewReader("hello"))
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if resp.StatusCode != http.StatusAccepted || string(text) != "hello" || resp.Header.Get("X-Path") != "/a/b" {
		t.Errorf("%d %q %v", resp.StatusCode, text, resp.Header)
	}
	req, _ := http.NewRequest(http.MethodDelete, "http://store/", nil)
	resp, err = client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusNoContent {
		t.Errorf("%d", resp.StatusCode)
	}
}
