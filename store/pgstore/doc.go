// Package pgstore keeps messages in PostgreSQL, 12 or newer, for any number of processes.
//
// # One round trip
//
// Accepting a batch, claiming, settling a batch and extending leases are one statement each, or a few in one pipeline that
// PostgreSQL runs as one transaction. What is rare (gates, follow-ups, changes from outside, messages that are refused) goes
// row by row through the code that all SQL stores share. See queries/3_hot.sql and queries/4_lines.sql.
//
// # Who may work beside whom
//
// Claims lock rows with SKIP LOCKED, so that no claim waits for another; a lease moves visible_at and version under that lock.
// Everything else locks the rows it changes and looks at them as they are then. Transactions are READ COMMITTED; one that
// loses a race (a deadlock, a name taken meanwhile) runs again.
//
// # Time
//
// The instants are the caller's, as the contract says; every claim tells the server's own clock beside.
//
// # Wake-ups
//
// NOTIFY, on a connection of their own, never in the transaction of an accept: PostgreSQL makes notifying transactions commit
// one after the other. Inside a caller's transaction (InTx) it is in it, once for the transaction.
//
// # What cannot be cleaned up
//
// While somebody holds an old transaction open, what was claimed stays in the index for claims. After a slow claim of a queue the
// process remembers from which instant on each priority has something left, and begins there (queries claim_from and next_from).
// What it writes itself lowers that; what other processes write before it is found by the claim that begins at the beginning,
// about once a second.
//
// # Names and sessions
//
// Tables are in the schema and have the prefix that Settings say. No statement needs a session to outlive its transaction but
// LISTEN, prepared statements and the planner's settings; Settings.Pooled does without, for PgBouncer in transaction mode.
package pgstore
