package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/belfryhq/belfry/store"
)

// Inspect reads from every master what its acknowledgements are worth, and tells of the weakest. What a server does not
// tell, because it is managed by others, is taken for weak.
func (s *Store) Inspect(ctx context.Context) (store.Info, error) {
	if err := s.enter(ctx); err != nil {
		return store.Info{}, err
	}
	defer s.exit()
	weakest, n, err := s.weakest(ctx)
	if err != nil {
		return store.Info{}, fmt.Errorf("inspect: %w", err)
	}
	info := weakest.info()
	info.Details["prefix"] = s.settings.Prefix
	if s.cluster != nil {
		info.Details["masters"] = strconv.Itoa(n)
	}
	if s.settings.WaitReplicas > 0 {
		info.Details["wait_replicas"] = strconv.Itoa(s.settings.WaitReplicas)
	}
	return info, nil
}

// weakest returns the master whose acknowledgements are worth least, and how many masters there are.
func (s *Store) weakest(ctx context.Context) (server, int, error) {
	if s.cluster == nil {
		one, err := inspect(ctx, s.client)
		return one, 1, err
	}
	var mu sync.Mutex
	var all []server
	err := s.cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
		one, err := inspect(ctx, node)
		mu.Lock()
		defer mu.Unlock()
		all = append(all, one)
		return err
	})
	if err != nil || len(all) == 0 {
		return server{}, 0, err
	}
	weakest := all[0]
	for _, one := range all[1:] {
		if one.durability() < weakest.durability() || one.warning() != "" && weakest.warning() == "" {
			weakest = one
		}
	}
	return weakest, len(all), nil
}

// server is how one server is set up; what it did not tell is empty.
type server struct {
	version    string
	mode       string // standalone or cluster
	appendOnly string // yes or no
	fsync      string // always, everysec or no
	save       string // when it takes snapshots
	memory     string // the most it uses, in bytes; 0: as much as there is
	eviction   string
	replicas   string
}

// inspect asks one server. Both commands may be forbidden.
func inspect(ctx context.Context, node redis.UniversalClient) (server, error) {
	var one server
	info, err := node.Info(ctx).Result()
	if err != nil && !isReply(err) {
		return one, err
	}
	fields := infoFields(info)
	one.version, one.mode, one.replicas = fields["redis_version"], fields["redis_mode"], fields["connected_slaves"]
	one.memory, one.eviction = fields["maxmemory"], fields["maxmemory_policy"]
	if aof := fields["aof_enabled"]; aof != "" {
		one.appendOnly = map[string]string{"1": "yes", "0": "no"}[aof]
	}
	for name, into := range map[string]*string{"appendonly": &one.appendOnly, "appendfsync": &one.fsync, "save": &one.save, "maxmemory-policy": &one.eviction} {
		got, err := node.ConfigGet(ctx, name).Result()
		if err != nil && !isReply(err) {
			return one, err
		}
		if value, told := got[name]; told {
			*into = value
		}
	}
	return one, nil
}

// infoFields reads the answer of INFO.
func infoFields(text string) map[string]string {
	fields := make(map[string]string)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields
}

// durability returns what an acknowledgement survives.
func (o server) durability() store.Durability {
	switch {
	case o.appendOnly == "yes" && o.fsync == "always":
		return store.Strict
	case o.appendOnly == "no":
		return store.Volatile
	default:
		return store.Weak
	}
}

// meaning says it plainly.
func (o server) meaning() string {
	switch {
	case o.appendOnly == "no" && o.save != "":
		return "no append-only file: what was accepted since the last snapshot is lost with the server"
	case o.appendOnly == "no":
		return "no append-only file: everything is lost with the server"
	case o.fsync == "always":
		return "always: accepted messages survive a power cut"
	case o.fsync == "everysec":
		return "everysec: up to one second of accepted messages can be lost with the server"
	case o.fsync == "no":
		return "no: accepted messages that the system has not written can be lost with the server, commonly half a minute of them"
	default:
		return "unknown: the server does not tell its appendfsync"
	}
}

// warning tells of what endangers messages whatever the durability.
func (o server) warning() string {
	switch {
	case o.eviction == "" || o.eviction == "noeviction" || o.memory == "0":
		return ""
	default:
		return "maxmemory-policy " + o.eviction + " can throw messages away: set noeviction"
	}
}

// info returns what Inspect tells.
func (o server) info() store.Info {
	info := store.Info{Name: "redis", Version: o.version, Schema: formatVersion, Durability: o.durability(), Details: map[string]string{"appendfsync": o.meaning()}}
	for name, value := range map[string]string{
		"appendonly": o.appendOnly, "mode": o.mode, "maxmemory_policy": o.eviction, "replicas": o.replicas, "warning": o.warning(),
	} {
		if value != "" {
			info.Details[name] = value
		}
	}
	return info
}
