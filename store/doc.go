// Package store is the contract between Belfry and a database: what keeps messages until they are delivered.
//
// # What a store is
//
// A Store is Line (the hot path: Put, Claim, Settle, Extend, Replace, Forfeit), Reader (Get, List, Count, Queues) and
// Keeper (Purge, Docs, Ping, Inspect, Close). A store decides nothing: which outcome a failed delivery has, when a retry
// is due, how long a finished message stays is computed by the engine and handed over as data. That is what makes six
// databases behave alike. Optional powers (Waker, Transactor, Clocker) are one-method interfaces with a fallback.
//
// # The claim key
//
// One value, VisibleAt, carries both the due instant of a waiting message and the end of a lease. A message whose lease
// ran out is simply visible again: there is no reaper, no second structure that could disagree. Claims take what is
// visible in the order (Priority, VisibleAt, ID).
//
// # The fence
//
// Every change after a claim is one conditional write on key, version and state, and its effect is checked. Version
// grows with every write but Extend; the version at the claim is the Token. A worker that lost its lease therefore
// changes nothing, however late it comes.
//
// # Time
//
// `now` is an argument of every method and the only time a store uses; it may go backwards between calls. Instants are
// whole milliseconds: what is due is rounded up, now is rounded down, so nothing is ever early.
//
// # Adding a store
//
// Write a package that implements Store and a test that calls storetest.Run with a function that opens an empty one.
// The suite states each law; a failing case prints the law it breaks. SQL databases need only a dialect of
// store/internal/sqlstore. CONTRIBUTING.md has the steps.
package store
