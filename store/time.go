package store

import "time"

// Never is the VisibleAt of a message that nothing makes due but its gate, and the PurgeAt of one that is kept for ever.
// It is 2^53-1 milliseconds, the largest instant that is exact in every backend, Redis scores included.
var Never = time.UnixMilli(1<<53 - 1).UTC()

// Ceil rounds an instant up to the millisecond, in UTC, without a monotonic reading: how an instant at which something
// may happen is stored. The zero time stays zero.
func Ceil(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	f := Floor(t)
	if f.Before(t) {
		return f.Add(time.Millisecond)
	}
	return f
}

// Floor rounds an instant down to the millisecond, in UTC, without a monotonic reading: how "now" is compared with
// what is stored, so that nothing is ever early. The zero time stays zero.
func Floor(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return time.UnixMilli(t.UnixMilli()).UTC()
}

// Earlier returns the earlier of two instants.
func Earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// Later returns the later of two instants.
func Later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
