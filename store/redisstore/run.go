package redisstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// moves is how often a call follows a slot that has moved to another node of a Cluster, and movePause how long it waits
// at first for the map of slots to be read again.
const (
	moves     = 6
	movePause = 5 * time.Millisecond
)

// errReplicas: a write was not seen by as many replicas as Settings.WaitReplicas says.
var errReplicas = errors.New("too few replicas have the write")

// run runs calls: those of one node in one pipeline, in their order, those of several nodes at once. Its error is the
// first of theirs. A call that the server may have run is never repeated here: whether it ran is for the caller to find out.
func (s *Store) run(ctx context.Context, calls ...*call) error {
	for attempt, left := 0, calls; len(left) > 0 && attempt <= moves; attempt++ {
		if attempt > 0 {
			if err := s.follow(ctx, attempt); err != nil {
				return err
			}
		}
		left = s.runOnce(ctx, left)
	}
	for _, c := range calls {
		if c.err != nil {
			return c.err
		}
	}
	return nil
}

// follow waits until slots that have moved may be known.
func (s *Store) follow(ctx context.Context, attempt int) error {
	s.cluster.ReloadState(ctx)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(movePause << attempt):
		return nil
	}
}

// runOnce runs calls and returns those that another node must run.
func (s *Store) runOnce(ctx context.Context, calls []*call) []*call {
	if s.cluster == nil {
		s.runOn(ctx, s.client, calls)
		return nil
	}
	var group sync.WaitGroup
	for node, theirs := range s.byNode(ctx, calls) {
		group.Go(func() { s.runOn(ctx, node, theirs) })
	}
	group.Wait()
	var left []*call
	for _, c := range calls {
		if c.err == nil {
			continue
		}
		if _, moved := redis.IsMovedError(c.err); moved {
			left = append(left, c)
		} else if !isReply(c.err) {
			s.cluster.ReloadState(ctx) // the node may be no master any more
		}
	}
	return left
}

// byNode sorts calls by the masters they belong to; those whose master is not known fail.
func (s *Store) byNode(ctx context.Context, calls []*call) map[*redis.Client][]*call {
	nodes := make(map[*redis.Client][]*call)
	for _, c := range calls {
		node, err := s.cluster.MasterForKey(ctx, c.key())
		if err != nil {
			c.fail(err)
			continue
		}
		nodes[node] = append(nodes[node], c)
	}
	return nodes
}

// piper is a client of one server.
type piper interface {
	Pipeline() redis.Pipeliner
}

// runOn runs calls on one server: by the hashes of their scripts, and by the scripts themselves where it does not know them.
func (s *Store) runOn(ctx context.Context, node piper, calls []*call) {
	s.pipe(ctx, node, calls, false)
	var unknown []*call
	for _, c := range calls {
		if redis.HasErrorPrefix(errors.Unwrap(c.err), "NOSCRIPT") {
			unknown = append(unknown, c)
		}
	}
	if len(unknown) > 0 {
		s.pipe(ctx, node, unknown, true)
	}
}

// pipe sends calls to one server and notes their answers. Where writes wait for replicas the pipeline ends with WAIT.
func (s *Store) pipe(ctx context.Context, node piper, calls []*call, whole bool) {
	pipe := node.Pipeline()
	commands, writes := make([]*redis.Cmd, len(calls)), false
	for i, c := range calls {
		commands[i] = c.queue(ctx, pipe, whole)
		writes = writes || c.write
	}
	var wait *redis.Cmd
	if writes && s.settings.WaitReplicas > 0 {
		wait = pipe.Do(ctx, "wait", s.settings.WaitReplicas, s.settings.WaitTimeout.Milliseconds())
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	for i, c := range calls {
		c.reply, c.err = commands[i].Val(), nil
		if err := commands[i].Err(); err != nil && !errors.Is(err, redis.Nil) {
			c.fail(err)
		} else if wait != nil && c.write {
			c.awaited(wait, s.settings.WaitReplicas)
		}
	}
}

// awaited notes whether enough replicas have the write.
func (c *call) awaited(wait *redis.Cmd, want int) {
	if n, err := wait.Int64(); err != nil {
		c.fail(err)
	} else if n < int64(want) {
		c.fail(fmt.Errorf("%w: %d of %d", errReplicas, n, want))
	}
}

// isReply reports whether an error is what a server answered.
func isReply(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}
