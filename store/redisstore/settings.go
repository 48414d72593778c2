package redisstore

import (
	"fmt"
	"strings"
	"time"
)

// Settings are how a store uses its servers. The zero value is right for most.
type Settings struct {
	// Prefix begins the names of all keys, so that several stores share a server; zero: "belfry". It may not contain
	// braces. Stores with different prefixes share nothing but the server.
	Prefix string
	// WaitReplicas is how many replicas must have a write before it is acknowledged (WAIT); zero: none. A write that
	// fewer have in time is answered with an error, and may be there all the same.
	WaitReplicas int
	// WaitTimeout bounds the wait for replicas; zero: one second.
	WaitTimeout time.Duration
	// Pool is how many connections there are at most to each server; zero: ten for each processor.
	Pool int
	// Timeout bounds the dialing of a connection and each read and write; zero: five seconds. A context that ends
	// earlier counts.
	Timeout time.Duration
}

// maxPrefix is how long a prefix may be; it is part of every key.
const maxPrefix = 100

// withDefaults returns the settings with nothing left open, or what is wrong with them.
func (s Settings) withDefaults() (Settings, error) {
	if s.Prefix == "" {
		s.Prefix = "belfry"
	}
	if len(s.Prefix) > maxPrefix || strings.ContainsAny(s.Prefix, "{}\x00 \r\n") {
		return s, fmt.Errorf("the prefix %q is longer than %d bytes or has braces or blanks", s.Prefix, maxPrefix)
	}
	if s.WaitReplicas < 0 {
		return s, fmt.Errorf("the number of replicas to wait for is %d", s.WaitReplicas)
	}
	if s.WaitTimeout <= 0 {
		s.WaitTimeout = time.Second
	}
	if s.Timeout <= 0 {
		s.Timeout = 5 * time.Second
	}
	return s, nil
}
