package testserver

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Cluster is a Redis Cluster of three masters, each with so many replicas.
type Cluster struct {
	// URL names the masters.
	URL string
	// Nodes are the servers: the masters, then the replicas of the first, of the second, of the third.
	Nodes []*Server
}

const (
	masters = 3
	slots   = 16384
)

// startCluster starts a cluster.
func startCluster(fast bool, replicas int) (*Cluster, error) {
	c := &Cluster{}
	for range masters * (1 + replicas) {
		bus, err := freePort()
		if err != nil {
			return nil, errors.Join(err, c.remove())
		}
		s, err := startRedis(fast, "--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(bus), "--cluster-node-timeout", "1000")
		if err != nil {
			return nil, errors.Join(err, c.remove())
		}
		c.Nodes = append(c.Nodes, s)
		if err := c.join(len(c.Nodes)-1, bus); err != nil {
			return nil, errors.Join(err, c.remove())
		}
	}
	var addrs []string
	for _, n := range c.Nodes[:masters] {
		addrs = append(addrs, addr(n.Port))
	}
	c.URL = "redis+cluster://" + strings.Join(addrs, ",")
	if err := c.replicate(replicas); err != nil {
		return nil, errors.Join(err, c.remove())
	}
	return c, c.await()
}

// join gives a master its slots and makes a node known to the first.
func (c *Cluster) join(i, bus int) error {
	ctx, cancel := context.WithTimeout(context.Background(), readyWithin)
	defer cancel()
	node := c.client(i)
	defer node.Close()
	var errs []error
	if i < masters {
		errs = append(errs, node.ClusterAddSlotsRange(ctx, i*slots/masters, (i+1)*slots/masters-1).Err())
	}
	errs = append(errs, node.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err())
	if i > 0 {
		first := c.client(0)
		defer first.Close()
		errs = append(errs, first.Do(ctx, "CLUSTER", "MEET", "127.0.0.1", c.Nodes[i].Port, bus).Err())
	}
	return errors.Join(errs...)
}

// replicate makes the further nodes replicas.
func (c *Cluster) replicate(replicas int) error {
	ctx, cancel := context.WithTimeout(context.Background(), readyWithin)
	defer cancel()
	for i := masters; i < len(c.Nodes); i++ {
		master := c.client((i - masters) / replicas)
		id, err := master.Do(ctx, "CLUSTER", "MYID").Text()
		_ = master.Close()
		if err != nil {
			return err
		}
		node := c.client(i)
		for err = errors.New("not tried"); err != nil && ctx.Err() == nil; {
			if err = node.ClusterReplicate(ctx, id).Err(); err != nil {
				time.Sleep(50 * time.Millisecond) // until it knows the master
			}
		}
		_ = node.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// await waits until every node finds the cluster in order.
func (c *Cluster) await() error {
	ctx, cancel := context.WithTimeout(context.Background(), readyWithin)
	defer cancel()
	for i := range c.Nodes {
		node := c.client(i)
		for {
			info, err := node.ClusterInfo(ctx).Result()
			if err == nil && c.inOrder(info) && (i < masters || synced(ctx, node)) {
				break
			}
			if ctx.Err() != nil {
				return errors.Join(fmt.Errorf("the cluster is not in order: %s", info), err, node.Close())
			}
			time.Sleep(20 * time.Millisecond)
		}
		_ = node.Close()
	}
	return nil
}

// inOrder reads what a node says of the cluster.
func (c *Cluster) inOrder(info string) bool {
	return strings.Contains(info, "cluster_state:ok") && strings.Contains(info, fmt.Sprintf("cluster_known_nodes:%d", len(c.Nodes)))
}

// synced reports whether a replica has what its master has: without that it never takes over.
func synced(ctx context.Context, replica *redis.Client) bool {
	info, err := replica.Info(ctx, "replication").Result()
	return err == nil && strings.Contains(info, "master_link_status:up")
}

func (c *Cluster) client(i int) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: addr(c.Nodes[i].Port)})
}

func (c *Cluster) remove() error {
	for _, n := range c.Nodes {
		n.remove()
	}
	return nil
}
