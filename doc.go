// Package belfry delivers messages later: it takes a message and an instant, keeps it in a database, and delivers it when due
// to a Go function, an HTTP endpoint or a message broker. It retries, and never loses what it accepted.
//
// A Client accepts messages and changes them while they wait; any number of processes may have one on a store. A Worker
// delivers: to handlers of a Mux by the message's kind, or to the Target that the message names (To). Both work on a
// store.Store: memstore for tests, sqlitestore embedded.
//
// What holds, whatever crashes: nothing accepted is lost; nothing is delivered before its instant, to the millisecond;
// after a Cancel that returned nil no delivery starts; a stale lease changes nothing; a message reaches one end, once.
// Delivery is at least once: a second one happens only after a crash, a lost lease or an unknown outcome.
package belfry
