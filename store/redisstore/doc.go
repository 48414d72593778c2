// Package redisstore is the store on Redis: one server, Sentinel or Cluster, version 6.2 or later (wake-ups on a Cluster
// need 7.0).
//
// # Keys
//
// A queue is a handful of keys with one hash tag, made from its name (keys.go), so that all of it lies in one slot. Each
// fact has one place: what scripts read of a message is its head, a field of one hash; what only Go reads is its body, a
// field of another; one sorted set for each priority has the live messages by VisibleAt, which is the due instant of what
// waits and the end of the lease of what is leased. A claim walks the priorities in use and takes what is visible, in
// exact order at any backlog; a lease that ran out is due like anything else, and nothing has to find it.
//
// # Scripts
//
// Every transition is one Lua script for a batch, called by its hash. A script reads heads with one command, decides by
// version and state, collects its writes and sends them with one command for each structure, so that its cost is that of
// the structures and not of calls. Calls are bounded by messages and bytes; none holds the server up for more than some
// milliseconds. What most calls need is short: messages with nothing but a due instant have a script of their own, and
// the functions for all others are made when a call needs them, since Redis runs a script's whole text every time. On a
// single server one call serves all queues of a batch; on a Cluster each queue has a call, and those of one node go in
// one pipeline.
//
// A call without an answer is never repeated here, nor by the client that Open makes: whether it took effect is for the
// caller to find out, who has ids, versions and tokens to do so. Only what a server certainly did not run is sent again:
// a script that it did not know, and a call for a slot that has moved.
//
// # Lists
//
// The indexes by CreatedAt and FireAt serve lists alone. A new message is only noted in a journal and entered when somebody
// lists; most are gone before. Lists over queues merge the queues' own lists. The names of queues are in sets of their own,
// written before the first message of a queue, and never removed.
//
// # Finished messages
//
// Body and history of a finished message leave the hashes for a key that expires a minute after PurgeAt, whether or not
// anybody calls Purge, which takes the rest: head and indexes.
//
// # Cluster
//
// Two things are atomic on a single server only. An atomic batch over several queues is looked at everywhere before it is
// stored. Follow-ups into other queues are put before their settlement, once its token is known to be current. While a slot
// is being moved the Cluster refuses scripts on it (TRYAGAIN), because their second key never exists: otherwise one could
// run on half of a queue's keys.
//
// # Durability
//
// It is what the server's appendonly and appendfsync give: Inspect reads and tells it. A failover loses what the replica
// had not received; Settings.WaitReplicas makes acknowledgements wait for it. maxmemory-policy must be noeviction.
//
// # Road not taken
//
// A list of due messages beside the set of waiting ones: promotion costs a second write, and a million messages that fall
// due at once block the server. A key for each message: two to three times the memory, and no batch reads. Functions
// instead of scripts: they need 7.0 and rights that managed servers do not give.
package redisstore
