// Package memstore is the store in memory: exact in every law of the contract, gone with the process.
//
// It is what tests run on and what a server without a database uses. It has no goroutines and no timers of its own and
// reads no clock, so it works inside testing/synctest. Several clients may share one Store: it is then also the Waker
// between them.
//
// # How it is built
//
// One mutex guards everything; batches make it cheap. A queue is
//
//   - ids: every message and trace by its id;
//   - lanes: one B-tree of live messages for each priority in use, ordered by (VisibleAt, ID). A claim walks the lanes
//     in the order of priorities and takes what is visible, so its cost depends on what it takes, not on what waits;
//   - leased: those under a lease, for limits and Forfeit;
//   - keys, groups, gates: indexes of the few messages that have a dedup key, a group or a gate.
//
// Beside the queues stand their names in order, and finished messages and traces by PurgeAt.
//
// Every change to a message has the same shape: take it out of the indexes, change it, put it back (Store.change). An
// index therefore never holds a message under an outdated key.
package memstore
