package redisstore

import (
	"context"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Open connects to the servers that a URL names:
//
//	redis://[user:password@]host[:port][/db][?parameters]
//	redis+cluster://[user:password@]host[:port],host[:port],…[?parameters]
//	redis+sentinel://[user:password@]host[:port],…[/db]?master=NAME[&parameters]
//
// and each with rediss for TLS. The parameters prefix, wait_replicas, wait_timeout, pool and timeout go before the fields
// of the settings; ca names a file with the certificates of authorities, where there is TLS; sentinel_user and
// sentinel_password are those of the Sentinels, user and password always those of the servers. What is wrong with the URL
// is a URLError.
func Open(ctx context.Context, url string, settings Settings) (*Store, error) {
	a, err := parseURL(url, settings)
	if err != nil {
		return nil, fmt.Errorf("open the Redis store: %w", err)
	}
	client := a.client()
	s, err := New(client, a.settings)
	if err == nil {
		s.owned = true
		err = s.greet(ctx)
	}
	if err != nil {
		_ = client.Close()
		return nil, fmt.Errorf("open the Redis store: %w", err)
	}
	return s, nil
}

// client returns a client that sends each command once: whether a write without an answer was made is not for it to guess.
func (a *address) client() redis.UniversalClient {
	o := redis.UniversalOptions{
		Addrs: a.hosts, Username: a.user, Password: a.password, DB: a.db, TLSConfig: a.tls,
		MasterName: a.master, SentinelUsername: a.sentinelUser, SentinelPassword: a.sentinelPassword,
		MaxRetries: -1, DialerRetries: 1, ContextTimeoutEnabled: true, PoolSize: a.settings.Pool,
		DialTimeout: a.settings.Timeout, ReadTimeout: a.settings.Timeout, WriteTimeout: a.settings.Timeout, PoolTimeout: a.settings.Timeout,
		ReadBufferSize: 64 << 10, WriteBufferSize: 64 << 10, PipelinePoolSize: -1,
		DisableIdentity: true, MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	switch a.kind {
	case "cluster":
		return redis.NewClusterClient(o.Cluster())
	case "sentinel":
		return redis.NewFailoverClient(o.Failover())
	default:
		return redis.NewClient(o.Simple())
	}
}

// formatVersion is the form in which keys are written; it changes when an older version could not read them.
const formatVersion = 1

// greet fails unless the servers can be reached and what they hold can be read.
func (s *Store) greet(ctx context.Context) error {
	if err := s.ping(ctx); err != nil {
		return err
	}
	key := s.keys.format()
	c := &call{args: []any{"get", key}}
	err := s.run(ctx, c)
	if err == nil && c.reply == nil {
		c = &call{args: []any{"get", key}}
		err = s.run(ctx, &call{args: []any{"set", key, formatVersion, "nx"}, write: true}, c)
	}
	if err != nil {
		return fmt.Errorf("agree on the form of the keys: %w", err)
	}
	if form, told := c.reply.(string); told && form != strconv.Itoa(formatVersion) {
		return fmt.Errorf("the keys with the prefix %q have the form %s, this version reads %d", s.settings.Prefix, form, formatVersion)
	}
	return nil
}

// ping fails unless every master answers.
func (s *Store) ping(ctx context.Context) error {
	if s.cluster != nil {
		return s.cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error { return ping(ctx, node) })
	}
	return ping(ctx, s.client)
}
