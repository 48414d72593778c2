package store

import (
	"context"
	"time"
)

// Line is the hot path: what accepts, hands out and takes back messages. Every method takes and returns batches;
// `now` is the caller's idea of the time and the only one a store uses, floored to the millisecond.
//
// All methods may be called concurrently. A result slice has one element per element of the argument, in its order.
// When the error is not nil the outcome is unknown: any part of the batch may have been applied, and the call may be
// repeated as it is. On a transient failure return the error, do not retry: the caller retries. No method keeps a
// reference to its arguments or to what it returned.
type Line interface {
	// Put accepts messages: when it returns nil, those whose result says so are stored durably. It assigns Version,
	// VisibleAt, UpdatedAt and Waits, and CreatedAt where zero. A message may be put in any state but Leased; a
	// zero State means Scheduled; a zero DueAt means FireAt. A message whose id or dedup key is taken, by what is
	// stored or by an earlier message of the batch, is not stored, and its result carries the one that is.
	Put(ctx context.Context, now time.Time, messages []Message, mode PutMode) ([]PutResult, error)

	// Claim takes a lease on claimable messages (live, VisibleAt ≤ now), at most the limit of each queue, and makes
	// them invisible until the lease's end. For each it counts the claim, clears the stop mark, sets Owner and
	// Epoch and raises Version. Within a queue it takes them in the order (Priority, VisibleAt, ID), exactly, at any
	// backlog. No two live leases on one message ever exist, whoever calls.
	Claim(ctx context.Context, claim Claim) (Claimed, error)

	// Settle ends leases. Each settlement is applied whole (state, history, follow-ups, gates) or not at all, and
	// only if its token is current; a stale one yields ErrLeaseLost and changes nothing. One whose Content takes a
	// dedup key that another message holds yields ErrDuplicate and changes nothing.
	Settle(ctx context.Context, now time.Time, settlements []Settlement) ([]error, error)

	// Extend moves the end of live leases to until. A lease that has run out is Lost, whether or not somebody else
	// has claimed the message since. Extending changes no version. A zero until only asks: it answers the same and
	// writes nothing.
	Extend(ctx context.Context, now time.Time, tokens []Token, until time.Time) ([]Held, error)

	// Replace changes messages from outside, each by one compare-and-swap on its version, which grows by one.
	// Errors: ErrNotFound, ErrConflict, ErrInFlight, ErrDuplicate.
	Replace(ctx context.Context, now time.Time, changes []Change) ([]error, error)

	// Forfeit ends the leases that the owner took in incarnations before epoch, because it knows that nobody works
	// on them any more: each becomes Scheduled again at its DueAt, its claim stays counted, its token goes stale.
	// It returns how many there were.
	Forfeit(ctx context.Context, now time.Time, owner string, epoch int64) (int, error)
}

// PutMode is a set of flags; zero stores what is new and leaves what is there.
type PutMode uint8

// The flags of a PutMode.
const (
	// Overwrite replaces what is stored under the id, live or finished, history included; what is under a live
	// lease is refused with ErrInFlight. The version goes on growing. Gates that wait for the id go on waiting if
	// the new message is live.
	Overwrite PutMode = 1 << iota
	// Atomic stores all messages of the call or none: when one is refused, all others yield ErrAborted.
	Atomic
)

// PutResult tells what became of one message.
type PutResult struct {
	// Err is nil when the message was stored; else ErrExists, ErrDuplicate, ErrInFlight or ErrAborted.
	Err error
	// Version is the stored message's version when Err is nil.
	Version int64
	// Existing is the message that has the id or holds the dedup key, without its payload and history; nil unless
	// Err is ErrExists, ErrDuplicate or ErrInFlight. Of the trace that a follow-up left only the key and State
	// (Done) are known.
	Existing *Message
}

// Claim asks for messages.
type Claim struct {
	Now   time.Time
	Until time.Time // the lease's end
	Owner string    // the claiming node; may be empty
	Epoch int64     // its incarnation

	// Queues are the queues to claim from, each with its limit.
	Queues []QueueClaim
	// Keys are messages to claim by address, whatever their order, if they are claimable; they count towards no limit.
	Keys []Key
	// Ahead lets slots that are left, after everything due was taken, be filled with what becomes visible within
	// Now+Ahead, in VisibleAt order (then ID). Nothing ahead fills a slot while something due waits in that queue.
	// It is shorter than the lease.
	Ahead time.Duration
}

// QueueClaim is one queue of a Claim.
type QueueClaim struct {
	Queue string
	Limit int // at most this many
	// Concurrency bounds the live leases of the queue over all claimers, this claim included; zero: no bound.
	Concurrency int
	// Rate bounds the claims of the queue over all claimers; zero: no bound.
	Rate Rate
}

// Rate is the generic cell rate algorithm's pair: on average one claim per Every, with at most Burst at once. A store
// keeps one instant per limited queue, the theoretical arrival time T: n claims are allowed while
// max(T, now) + n·Every ≤ now + Burst·Every, and then T becomes max(T, now) + n·Every. Microsecond precision suffices.
type Rate struct {
	Every time.Duration
	Burst int // at least 1 where Every is set
}

// Claimed is what a Claim got.
type Claimed struct {
	// Messages are the leased messages as they are now, without history: first those of Keys, then those of each
	// queue in the order of Claim.Queues, within a queue in claim order. Token() of each is its token.
	Messages []Message
	// Queues tells of each queue of the claim, in its order, what is left.
	Queues []QueueNext
	// StoreNow is the store's own clock at some moment while it served the call; zero when it has none but the caller's.
	StoreNow time.Time
	// Revision is the revision of the docs.
	Revision int64
}

// QueueNext tells what is left in a queue after a claim.
type QueueNext struct {
	// Next is the earliest instant at which something in the queue is visible, in the past where due messages were
	// left over; leases taken or held by anybody count with their end. Never when there is nothing. It may be earlier
	// than the truth, never later.
	Next time.Time
	// Limited is set when due messages were left because of Concurrency or Rate, not because of Limit. FreeAt is
	// then the instant at which the rate allows the next claim; zero when Concurrency is what bounds.
	Limited bool
	FreeAt  time.Time
}

// Outcome is how a lease ends.
type Outcome uint8

// The outcomes. OutcomeRetry and OutcomeRelease leave the message live, the others finish it.
const (
	// OutcomeDone finishes the message as Done.
	OutcomeDone Outcome = iota + 1
	// OutcomeRetry makes it Scheduled at At after a failed attempt.
	OutcomeRetry
	// OutcomeRelease gives it back, Scheduled at At, and uncounts the claim.
	OutcomeRelease
	// OutcomeBury finishes it as Dead.
	OutcomeBury
	// OutcomeCancel finishes it as Canceled.
	OutcomeCancel
)

// State returns the state a message has after the outcome.
func (o Outcome) State() State {
	switch o {
	case OutcomeDone:
		return Done
	case OutcomeBury:
		return Dead
	case OutcomeCancel:
		return Canceled
	default:
		return Scheduled
	}
}

// Settlement ends one lease.
type Settlement struct {
	Token   Token
	Outcome Outcome
	// At is the new DueAt and VisibleAt for OutcomeRetry and OutcomeRelease.
	At time.Time
	// PurgeAt is until when a finished message is kept; at or before now: it is removed with this write, and a
	// message with a Parent leaves its id taken for TraceTTL. Its dedup key stays held until DedupUntil where that
	// is later: the engine keeps PurgeAt at least there.
	PurgeAt time.Time
	// Error is the new LastError.
	Error string
	// Attempt is appended to the history, and Attempts grows by one; nil: neither.
	Attempt *Attempt
	// Content, when not nil, replaces what Replace may change but what this settlement itself sets (State, DueAt,
	// LastError, FinishedAt, PurgeAt, Claims; Attempts is Content's, plus one for Attempt).
	Content *Message
	// FollowUps are put with this settlement, atomically (or, where a store cannot, before it), each as Put would
	// without flags; one whose id or dedup key is taken is left as it is. Their Parent is set. In its own queue they
	// meet the message as the settlement left it: a dedup key that it gave up is free, and no gate waits for it.
	FollowUps []Message
}

// TraceTTL is how long the id of a follow-up that left no finished message stays taken.
const TraceTTL = 24 * time.Hour

// Held is the answer to an extension.
type Held uint8

// The answers.
const (
	Lost     Held = iota // the token is stale or the lease has run out
	Extended             // held until the new end
	Stopping             // held until the new end, and the holder is asked to stop
)

// Change is one change from outside.
type Change struct {
	// Message is the message as it shall be. Queue, ID and Version say which; the version must be the stored one.
	// All else is written but what the store owns, CreatedAt and History. State may be Scheduled, which makes it
	// visible at DueAt, or a finished one, which removes it at once when PurgeAt ≤ now (with a Parent, its id stays
	// taken for TraceTTL). Gate is ignored: a closed gate stays closed until it opens or the message finishes.
	Message Message
	Mode    ChangeMode
}

// ChangeMode says what a change may do to a leased message.
type ChangeMode uint8

// The modes.
const (
	// Swap refuses a message under a live lease with ErrInFlight; a lease that has run out does not count.
	Swap ChangeMode = iota
	// Revoke changes it even so, and makes the holder's token stale.
	Revoke
	// Mark sets the stop mark of a message under a live lease and changes nothing else, the version included; of
	// Message only the key is read. Without a live lease: ErrConflict.
	Mark
)
