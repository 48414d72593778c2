// Package sqlitestore is the store in one SQLite file, the default: no server, no set-up, no cgo, and a file that people
// can read with sqlite3 (see the view overview and migrations/00001_messages.sql).
//
// # One process, one writer
//
// A file belongs to the process that opened it: the kernel holds a lock for it and lets go of it when the process ends,
// however it ends. So nobody else can hold a lease, and Open gives back all that a crash has left.
//
// All writes of the process go through one goroutine. It takes every operation that has queued up, whatever its kind,
// runs them in one transaction and answers them after one COMMIT; while that is on its way to the disk, the next ones
// queue up. There is no timer: a lone operation waits for nobody. An operation that fails is undone alone.
//
// Reads run beside it on connections of their own, each on a snapshot.
//
// # Durability
//
// With synchronous=FULL, the default, an acknowledged write survives a power cut (store.Strict). Settings.Synchronous
// Normal survives the end of the process only (store.Weak); with batches it is hardly faster.
//
// # Checkpoints
//
// The write-ahead log is copied into the file by a goroutine of the store, beside the writer and not by it, so that no
// caller waits for that. See checkpointer.
package sqlitestore
