package sqlstore

import (
	"sync/atomic"
	"time"
)

// Versions gives first versions to messages. It never gives one that is not larger than every version that was written
// through it, so that an id that is used again repeats none. It may be used concurrently.
type Versions struct {
	last atomic.Int64
}

// Next returns the first version of a new message: the instant in microseconds, or more where that was used before.
func (v *Versions) Next(now time.Time) int64 {
	for {
		last := v.last.Load()
		next := max(now.UnixMicro(), last+1)
		if v.last.CompareAndSwap(last, next) {
			return next
		}
	}
}

// Saw tells of a version that a write gave to a message, or that an earlier process may have given.
func (v *Versions) Saw(version int64) {
	for {
		last := v.last.Load()
		if version <= last || v.last.CompareAndSwap(last, version) {
			return
		}
	}
}

// Last returns the largest version that is known to be used.
func (v *Versions) Last() int64 { return v.last.Load() }
