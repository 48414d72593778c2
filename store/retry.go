package store

import "time"

// Retry is a message's retry policy. It is data: the engine decides by it, stores only keep it. The zero value means
// the default of whoever accepts the message (see belfry.DefaultRetry). A policy that is partly zero is filled from that
// default before the message is stored; where zero means "none" in what is stored (MaxAge, Max, Jitter), -1 says so to
// the default too and is kept as "none".
type Retry struct {
	// MaxAttempts bounds deliveries with a known outcome; zero: the default; negative: no limit.
	MaxAttempts int `json:"attempts,omitempty"`
	// MaxClaims bounds claims, those that ended in a crash included; zero: MaxAttempts + 4, or, where attempts have no
	// limit, 29 claims that came to nothing.
	MaxClaims int `json:"claims,omitempty"`
	// MaxAge bounds the time from FireAt to the last retry; zero: no limit.
	MaxAge time.Duration `json:"age,omitempty"`
	// Backoff is how the delay grows; zero: exponential.
	Backoff Backoff `json:"backoff,omitempty"`
	// Base is the delay before the first retry; Max caps every delay (zero: no cap). Factor is the growth of an
	// exponential backoff; zero: 2.
	Base   time.Duration `json:"base,omitempty"`
	Max    time.Duration `json:"max,omitempty"`
	Factor float64       `json:"factor,omitempty"`
	// Delays are the delays of a list backoff; the last one repeats.
	Delays []time.Duration `json:"delays,omitempty"`
	// Jitter is the part of a delay that is drawn at random, 0 to 1: the delay becomes d·(1-Jitter) + rand·d·Jitter.
	Jitter float64 `json:"jitter,omitempty"`
	// RetryAfterMax caps the delay a target asks for; zero: 24 hours.
	RetryAfterMax time.Duration `json:"retry_after_max,omitempty"`
}

// Backoff is the shape of the delays between attempts.
type Backoff string

// The backoffs.
const (
	Exponential Backoff = "exponential" // Base · Factor^(n-1)
	Linear      Backoff = "linear"      // Base · n
	Fixed       Backoff = "fixed"       // Base
	List        Backoff = "list"        // Delays[n-1]
)
