// Package lifecycle decides what becomes of a message. It is pure: every function computes from its arguments, reads no
// clock, draws no random number of its own and modifies nothing it is given; a store applies what it returns.
//
// Three kinds of decisions exist. Preflight, Settle, Interrupted and Unstarted end a lease, as a store.Settlement.
// Cancel, Reschedule, Revive and Remove change a message from outside and return it as it shall be for a store.Change.
// Delay, Resolve and Validate are the arithmetic of a retry policy.
//
// # Bounds
//
// An attempt is a delivery with a known outcome. Attempts use up Retry.MaxAttempts, claims use up Retry.MaxClaims, and
// both are counted before anything is delivered again: a message ends dead after the last attempt, or at the first claim
// beyond its bound. A settlement never asks for a retry that Preflight would refuse for its number.
//
// # Instants
//
// What a settlement carries is in whole milliseconds: At and PurgeAt are rounded up, so that nothing is early; what has
// happened (FinishedAt, Attempt.StartedAt) is rounded down, as "now" is.
package lifecycle
