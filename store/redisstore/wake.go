package redisstore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/belfryhq/belfry/store"
)

const (
	wakeBytes = 32 << 10         // of one notice
	quiet     = 15 * time.Second // after so long without a notice the connection is tested
	patience  = 10 * time.Second // how long a subscription, or the answer to a test, may take
)

// Wake publishes the hints, as few notices as their size allows.
func (s *Store) Wake(ctx context.Context, hints []store.QueueHint) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.exit()
	if err := s.publish(ctx, hints); err != nil {
		return fmt.Errorf("wake: %w", err)
	}
	return nil
}

// tell wakes listeners for gates that opened. It is best effort: the safety scan finds what no notice told of.
func (s *Store) tell(ctx context.Context, hints []store.QueueHint) {
	if len(hints) > 0 {
		_ = s.publish(ctx, hints)
	}
}

// publish sends hints to the channel of wake-ups. On a Cluster it is a sharded channel, which concerns one node and not
// all of them.
func (s *Store) publish(ctx context.Context, hints []store.QueueHint) error {
	command := "publish"
	if s.cluster != nil {
		command = "spublish"
	}
	var calls []*call
	var notice []byte
	flush := func() {
		if len(notice) > 0 {
			calls = append(calls, &call{args: []any{command, s.keys.wake(), notice}})
			notice = nil
		}
	}
	for _, h := range hints {
		notice = appendHint(notice, h)
		if len(notice) > wakeBytes {
			flush()
		}
	}
	flush()
	return s.run(ctx, calls...)
}

// appendHint appends a hint to a notice.
func appendHint(notice []byte, h store.QueueHint) []byte {
	return binary.AppendVarint(appendString(notice, h.Queue), millis(h.At))
}

// readHints reads a notice.
func readHints(notice string) ([]store.QueueHint, error) {
	var hints []store.QueueHint
	for r := (reader{text: notice}); len(r.text) > 0; {
		h := store.QueueHint{Queue: r.string(), At: instant(r.varint())}
		if r.failed {
			return nil, errors.New("a wake-up is broken")
		}
		hints = append(hints, h)
	}
	return hints, nil
}

// Listen calls back for each wake-up until ctx ends, the connection is lost or the store is closed.
func (s *Store) Listen(ctx context.Context, ready func(), heard func([]store.QueueHint)) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	var sub *redis.PubSub
	if s.cluster != nil {
		sub = s.cluster.SSubscribe(ctx)
	} else {
		sub = s.client.Subscribe(ctx)
	}
	s.exit()
	defer sub.Close()
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	defer func() { cancel(); <-ended }()
	go func() { // a read does not end with its context
		defer close(ended)
		select {
		case <-s.closing:
		case <-ctx.Done():
		}
		_ = sub.Close()
	}()
	err := s.listen(ctx, sub, ready, heard)
	select {
	case <-s.closing:
		return store.ErrClosed
	default:
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("listen: %w", err)
}

// listen subscribes and reads until the connection fails.
func (s *Store) listen(ctx context.Context, sub *redis.PubSub, ready func(), heard func([]store.QueueHint)) error {
	subscribe := sub.Subscribe
	if s.cluster != nil {
		subscribe = sub.SSubscribe
	}
	if err := subscribe(ctx, s.keys.wake()); err != nil {
		return err
	}
	tested := true // an answer, to the subscription at first, is due within patience
	for {
		wait := quiet
		if tested {
			wait = patience
		}
		notice, err := sub.ReceiveTimeout(ctx, wait)
		var late net.Error
		switch {
		case err == nil:
			tested = false
		case errors.As(err, &late) && late.Timeout() && !tested:
			if err := sub.Ping(ctx); err != nil {
				return err
			}
			tested = true
			continue
		default:
			return err
		}
		switch notice := notice.(type) {
		case *redis.Subscription:
			if ready != nil {
				ready()
			}
		case *redis.Message:
			hints, err := readHints(notice.Payload)
			if err != nil {
				return err
			}
			heard(hints)
		}
	}
}
