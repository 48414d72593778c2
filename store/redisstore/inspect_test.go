package redisstore_test

import (
	"strings"
	"testing"

	"github.com/belfryhq/belfry/internal/testserver"
	"github.com/belfryhq/belfry/store"
	"github.com/belfryhq/belfry/store/redisstore"
)

func TestInspectSaysWhatAcknowledgementsAreWorth(t *testing.T) {
	t.Parallel()
	server := testserver.StartRedis(t)
	s, raw := openURL(t, server.URL, redisstore.Settings{}), rawClient(t, server.URL)
	for _, c := range []struct {
		set   []string
		class store.Durability
		says  string
	}{
		{[]string{"appendfsync", "always"}, store.Strict, "survive a power cut"},
		{[]string{"appendfsync", "everysec"}, store.Weak, "up to one second of accepted messages can be lost with the server"},
		{[]string{"appendfsync", "no"}, store.Weak, "can be lost with the server"},
		{[]string{"appendonly", "no"}, store.Volatile, "everything is lost with the server"},
		{[]string{"save", "60 1"}, store.Volatile, "since the last snapshot is lost"},
	} {
		if err := raw.ConfigSet(t.Context(), c.set[0], c.set[1]).Err(); err != nil {
			t.Fatal(err)
		}
		info, err := s.Inspect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if info.Name != "redis" || info.Version == "" || info.Durability != c.class || !strings.Contains(info.Details["appendfsync"], c.says) {
			t.Errorf("%v: %+v, want %v, %q", c.set, info, c.class, c.says)
		}
	}
}

func TestInspectWarnsOfEviction(t *testing.T) {
	t.Parallel()
	server := testserver.StartRedis(t, "--maxmemory", "100mb")
	s, raw := openURL(t, server.URL, redisstore.Settings{}), rawClient(t, server.URL)
	for policy, warns := range map[string]bool{"noeviction": false, "allkeys-lru": true, "volatile-ttl": true} {
		if err := raw.ConfigSet(t.Context(), "maxmemory-policy", policy).Err(); err != nil {
			t.Fatal(err)
		}
		info, err := s.Inspect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(info.Details["warning"], policy) != warns {
			t.Errorf("%s: the warning is %q", policy, info.Details["warning"])
		}
	}
}

func TestInspectOfAServerThatTellsNothing(t *testing.T) {
	t.Parallel()
	server := testserver.StartRedis(t)
	raw := rawClient(t, server.URL)
	if err := raw.Do(t.Context(), "ACL", "SETUSER", "app", "on", ">secret", "~*", "&*", "+@all", "-config", "-info").Err(); err != nil {
		t.Fatal(err)
	}
	s := openURL(t, strings.Replace(server.URL, "redis://", "redis://app:secret@", 1), redisstore.Settings{})
	info, err := s.Inspect(t.Context())
	if err != nil || info.Durability != store.Weak || !strings.Contains(info.Details["appendfsync"], "unknown") {
		t.Errorf("Inspect gives %+v, %v", info, err)
	}
	mustPut(t, s, start, message("q", "m", start))
}
