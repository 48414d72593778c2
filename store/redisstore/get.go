package redisstore

import (
	"context"
	"fmt"
	"time"

	"github.com/belfryhq/belfry/store"
)

// one runs a script that reads from one queue.
func (s *Store) one(ctx context.Context, what *script, queue string, args ...any) (*call, error) {
	var t targets
	t.number(s.keys, queue)
	c := &call{script: what, keys: t.keys, args: args}
	return c, s.run(ctx, c)
}

// Get returns one message with payload and history.
func (s *Store) Get(ctx context.Context, key store.Key) (store.Message, error) {
	if err := s.enter(ctx); err != nil {
		return store.Message{}, err
	}
	defer s.exit()
	c, err := s.one(ctx, s.scripts.get, key.Queue, key.ID)
	if err != nil {
		return store.Message{}, fmt.Errorf("get %q of queue %q: %w", key.ID, key.Queue, err)
	}
	answer := c.list()
	if len(answer) != 3 {
		return store.Message{}, store.ErrNotFound
	}
	m := store.Message{Queue: key.Queue, ID: key.ID}
	if _, err := readMessage(asText(answer[0]), asText(answer[1]), &m); err != nil {
		return store.Message{}, err
	}
	if m.History, err = readHistory(asText(answer[2])); err != nil {
		return store.Message{}, fmt.Errorf("message %q of queue %q: %w", key.ID, key.Queue, err)
	}
	return m, nil
}

// Holder returns who holds a dedup key.
func (s *Store) Holder(ctx context.Context, queue, dedupKey string, now time.Time) (store.Key, error) {
	if err := s.enter(ctx); err != nil {
		return store.Key{}, err
	}
	defer s.exit()
	c, err := s.one(ctx, s.scripts.holder, queue, floor(now), dedupKey)
	if err != nil {
		return store.Key{}, fmt.Errorf("look for the holder of a dedup key in queue %q: %w", queue, err)
	}
	id, found := c.reply.(string)
	if !found {
		return store.Key{}, store.ErrNotFound
	}
	return store.Key{Queue: queue, ID: id}, nil
}
