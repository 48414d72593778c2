package redisstore_test

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/belfryhq/belfry/internal/testserver"
	"github.com/belfryhq/belfry/store"
	"github.com/belfryhq/belfry/store/redisstore"
)

func TestWhatAnotherVersionWroteIsNotOpened(t *testing.T) {
	t.Parallel()
	url := testserver.Redis(t)
	raw := rawClient(t, url)
	_, prefix, _ := strings.Cut(url, "prefix=")
	if err := openURL(t, url, redisstore.Settings{}).Close(); err != nil {
		t.Fatal(err)
	}
	again := openURL(t, url, redisstore.Settings{})
	if info, err := again.Inspect(t.Context()); err != nil || info.Schema != 1 {
		t.Errorf("Inspect gives %+v, %v", info, err)
	}
	if err := raw.Set(t.Context(), prefix+"{docs}:format", "2", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if s, err := redisstore.Open(t.Context(), url, redisstore.Settings{}); err == nil || !strings.Contains(err.Error(), "have the form 2") {
		t.Errorf("Open gives %v, %v", s, err)
	}
}

func TestARingIsRefused(t *testing.T) {
	t.Parallel()
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:1"}})
	defer ring.Close()
	if _, err := redisstore.New(ring, redisstore.Settings{}); err == nil {
		t.Error("it is taken")
	}
}

// A server that evicts can throw a queue's messages away. What is accepted after that must not suffer from it.
func TestAQueueGoesOnAfterEviction(t *testing.T) {
	t.Parallel()
	url := testserver.Redis(t)
	s, raw := openURL(t, url, redisstore.Settings{}), rawClient(t, url)
	_, prefix, _ := strings.Cut(url, "prefix=")
	mustPut(t, s, start, messages("q", 5, start)...)
	claimed(t, s, start, "q", 2)
	total(t, s, store.Query{Queue: "q", Kind: "kind"})
	if err := raw.Del(t.Context(), prefix+"{:q}:h").Err(); err != nil {
		t.Fatal(err)
	}
	mustPut(t, s, start, message("q", "new", start))
	if got := claimed(t, s, start, "q", 10); len(got) != 1 || got[0].ID != "new" {
		t.Errorf("claimed %v", got)
	}
	if got := claimed(t, s, start.Add(1e12), "q", 10); len(got) != 1 {
		t.Errorf("claimed later %v", got)
	}
	if page, err := s.List(t.Context(), store.Query{Queue: "q"}); err != nil || len(page.Messages) != 1 {
		t.Errorf("List gives %v, %v", page.Messages, err)
	}
	if _, err := s.Forfeit(t.Context(), start, "node", 2); err != nil {
		t.Error(err)
	}
}
