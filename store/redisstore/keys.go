package redisstore

import (
	"hash/fnv"
	"strconv"
	"strings"
)

// All names of keys are made here. With the prefix p and a queue whose encoded name is t:
//
//	p{t}:h         hash     id → head, of every message and trace (head.go), and a few fields of the queue (lib.lua)
//	p{t}:b         hash     id → body, of live messages whose body does not follow the head (body.go)
//	p{t}:a         hash     id → history, of live messages that have one
//	p{t}:k:ID      string   body and history of a finished message; expires by itself
//	p{t}:zPRIORITY zset     live messages of the priority by VisibleAt
//	p{t}:q         zset     priorities in use
//	p{t}:l         set      leased messages
//	p{t}:c, f      zset     messages by CreatedAt, by FireAt, but for those in the journal
//	p{t}:j         list     the journal: ids of messages that are not yet in both of these (lib.lua)
//	p{t}:e3, 4, 5  zset     done, dead and canceled messages by FinishedAt
//	p{t}:p         zset     finished messages and traces by PurgeAt
//	p{t}:g, r      zset     group or parent, a zero byte, and id, in lexical order
//	p{t}:d         hash     dedup key → ids
//	p{t}:w, y      hash     id → ids of gates that wait for it; gate → ids it waits for
//	p{names N}     zset     names of queues, in lexical order, for N from 0 to 15 by a hash of the name
//	p{docs}:…      the docs, and the form in which all is written
//	p:wake         the channel of wake-ups
//
// All keys of a queue have the hash tag {t} and so lie in one slot of a Cluster. A script is given the first of them and
// one that never exists, and derives the others. In a slot that is being moved the second makes the Cluster refuse the
// script as a whole (TRYAGAIN): without it one could run where half of the queue's keys are already gone.

// shards is over how many keys the names of queues are spread.
const shards = 16

// keyspace makes the names of a store's keys.
type keyspace struct{ prefix string }

// queue returns what begins the names of all keys of a queue.
func (k keyspace) queue(name string) string { return k.prefix + "{" + tag(name) + "}:" }

// pair returns what a script is given of a queue.
func (k keyspace) pair(name string) (heads, never string) {
	base := k.queue(name)
	return base + "h", base + "!"
}

// names returns the key of a shard of queue names.
func (k keyspace) names(shard int) string { return k.prefix + "{names " + strconv.Itoa(shard) + "}" }

// shard returns the shard that a queue's name belongs to.
func shard(queue string) int {
	h := fnv.New32a()
	h.Write([]byte(queue))
	return int(h.Sum32() % shards)
}

// docs returns the keys of the docs: their records, their names, and the revision.
func (k keyspace) docs() (records, names, revision string) {
	base := k.prefix + "{docs}:"
	return base + "records", base + "names", base + "revision"
}

// format returns the key of the form in which all is written.
func (k keyspace) format() string { return k.prefix + "{docs}:format" }

// wake returns the channel of wake-ups.
func (k keyspace) wake() string { return k.prefix + ":wake" }

// tag returns the hash tag of a queue: its name, but that bytes which are not plain are written %XX. The tags of two
// queues differ, none is empty, which Redis would not take for a tag, and none is that of another kind of key, since
// those are bare words and every queue's begins with a colon.
func tag(queue string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	b.Grow(len(queue) + 1)
	b.WriteByte(':')
	for i := range len(queue) {
		c := queue[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("-_./:@~+", c) >= 0:
			b.WriteByte(c)
		default:
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		}
	}
	return b.String()
}
