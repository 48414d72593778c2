package redisstore_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/belfryhq/belfry/internal/testserver"
	"github.com/belfryhq/belfry/store"
	"github.com/belfryhq/belfry/store/redisstore"
)

// bodies returns the keys of finished messages.
func bodies(t *testing.T, raw *redis.Client, prefix string) []string {
	t.Helper()
	keys, err := raw.Keys(t.Context(), prefix+"{*:k:*").Result()
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func TestFinishedMessagesExpireByThemselves(t *testing.T) {
	t.Parallel()
	url := testserver.Redis(t)
	s, raw := openURL(t, url, redisstore.Settings{}), rawClient(t, url)
	_, prefix, _ := strings.Cut(url, "prefix=")
	now := store.Floor(time.Now())
	m := message("q", "m", now)
	m.DedupKey = "key"
	mustPut(t, s, now, m)
	held := claimed(t, s, now, "q", 1)
	mustSettle(t, s, now, store.Settlement{
		Token: held[0].Token(), Outcome: store.OutcomeDone, PurgeAt: now.Add(time.Hour), Attempt: &store.Attempt{Number: 1},
	})
	keys := bodies(t, raw, prefix)
	if len(keys) != 1 {
		t.Fatalf("the keys of finished messages are %q", keys)
	}
	if left := raw.TTL(t.Context(), keys[0]).Val(); left < time.Hour || left > time.Hour+2*time.Minute {
		t.Errorf("it expires in %v, want a little after its PurgeAt", left)
	}

	// What is left when it has expired before anybody called Purge.
	if err := raw.PExpire(t.Context(), keys[0], time.Millisecond).Err(); err != nil {
		t.Fatal(err)
	}
	for raw.Exists(t.Context(), keys[0]).Val() == 1 {
		if t.Context().Err() != nil {
			t.Fatal("it does not expire")
		}
	}
	if _, err := s.Get(t.Context(), m.Key()); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("Get gives %v", err)
	}
	if page, err := s.List(t.Context(), store.Query{Queue: "q"}); err != nil || len(page.Messages) != 0 {
		t.Errorf("List gives %v, %v", page.Messages, err)
	}
	change := held[0]
	change.State, change.Version = store.Scheduled, change.Version+1
	if errs, err := s.Replace(t.Context(), now, []store.Change{{Message: change}}); err != nil || !errors.Is(errs[0], store.ErrNotFound) {
		t.Errorf("Replace gives %v, %v", errs, err)
	}
	mustPut(t, s, now, m)
	again := claimed(t, s, now, "q", 1)
	if len(again) != 1 || again[0].Version <= held[0].Version+1 {
		t.Fatalf("the id is used again: %+v", again)
	}
	mustSettle(t, s, now, store.Settlement{Token: again[0].Token(), Outcome: store.OutcomeDone})
	if n, err := s.Purge(t.Context(), now.Add(2*time.Hour), 10); err != nil || n != 0 {
		t.Errorf("Purge removes %d, %v", n, err)
	}
}

func TestExpiredMessagesArePurgedFromTheIndexes(t *testing.T) {
	t.Parallel()
	url := testserver.Redis(t)
	s, raw := openURL(t, url, redisstore.Settings{}), rawClient(t, url)
	_, prefix, _ := strings.Cut(url, "prefix=")
	done := message("q", "done", start)
	done.State, done.FinishedAt, done.PurgeAt = store.Done, start, start.Add(time.Hour)
	mustPut(t, s, start, done)
	raw.Del(t.Context(), bodies(t, raw, prefix)...)
	if n, err := s.Purge(t.Context(), start.Add(time.Hour), 10); err != nil || n != 1 {
		t.Errorf("Purge removes %d, %v", n, err)
	}
	if n := total(t, s, store.Query{Queue: "q"}); n != 0 {
		t.Errorf("%d messages are counted", n)
	}
}

func TestMessagesThatAreKeptForEverDoNotExpire(t *testing.T) {
	t.Parallel()
	url := testserver.Redis(t)
	s, raw := openURL(t, url, redisstore.Settings{}), rawClient(t, url)
	_, prefix, _ := strings.Cut(url, "prefix=")
	for id, purge := range map[string]time.Time{"never": store.Never, "imported": start.AddDate(-40, 0, 0), "unset": {}} {
		m := message("q", id, start)
		m.State, m.FinishedAt, m.PurgeAt = store.Done, start, purge
		mustPut(t, s, start, m)
	}
	for _, key := range bodies(t, raw, prefix) {
		if left := raw.PTTL(t.Context(), key).Val(); left != -1 {
			t.Errorf("%s expires in %v", key, left)
		}
	}
}
