package config

import (
	"fmt"
	"strconv"
	"strings"
)

// Queue is a queue to deliver from.
type Queue struct {
	Name        string // or a prefix ending in *
	Concurrency int    // zero: the default
}

// Queues are queues to deliver from.
type Queues []Queue

// UnmarshalText reads names, each with =concurrency or without, separated by commas.
func (q *Queues) UnmarshalText(text []byte) error {
	*q = nil
	seen := map[string]bool{}
	for _, item := range items(string(text)) {
		name, number, hasNumber := strings.Cut(item, "=")
		n, err := strconv.Atoi(number)
		if name == "" || hasNumber && (err != nil || n < 1) {
			return wrong(item, "give queues such as mail=20,reports, a name and how many deliveries at once")
		}
		if seen[name] {
			return wrong(item, "the queue is named twice")
		}
		seen[name] = true
		*q = append(*q, Queue{Name: name, Concurrency: n})
	}
	return nil
}

// String writes the list as it is read.
func (q Queues) String() string {
	return join(q, func(queue Queue) string {
		if queue.Concurrency == 0 {
			return queue.Name
		}
		return queue.Name + "=" + strconv.Itoa(queue.Concurrency)
	})
}

// Key is an API key with the name under which its use is logged.
type Key struct {
	Name   string
	Secret Secret
}

// Keys are API keys.
type Keys []Key

// UnmarshalText reads name=key, separated by commas. Its errors repeat no key.
func (k *Keys) UnmarshalText(text []byte) error {
	*k = nil
	seen := map[string]bool{}
	for i, item := range items(string(text)) {
		name, key, ok := strings.Cut(item, "=")
		if !ok || name == "" || key == "" {
			return wrong("", "entry %d is not name=key; give keys such as billing=<32 characters or more>,ops=<…>", i+1)
		}
		if err := CheckKey(key); err != nil {
			return wrong("", "the key %q %s", name, err)
		}
		if seen[name] {
			return wrong("", "the name %q is used twice", name)
		}
		seen[name] = true
		*k = append(*k, Key{Name: name, Secret: NewSecret(key)})
	}
	return nil
}

// MinKey is how many characters an API key must have.
const MinKey = 32

// CheckKey refuses keys that could be guessed. The error continues a sentence that begins with the key's name.
func CheckKey(key string) error {
	if len(key) < MinKey {
		return fmt.Errorf("has %d characters and needs at least %d; make one with: openssl rand -hex 32", len(key), MinKey)
	}
	return nil
}

// Mask returns the names.
func (k Keys) Mask() string {
	return join(k, func(key Key) string { return key.Name + "=" + masked })
}

// APIKey is one API key.
type APIKey struct{ Secret }

// UnmarshalText refuses keys that could be guessed.
func (k *APIKey) UnmarshalText(text []byte) error {
	if err := CheckKey(string(text)); err != nil {
		return wrong("", "the key %s", err)
	}
	return k.Secret.UnmarshalText(text)
}

// Size is a number of bytes.
type Size int64

// units are what a size may end with, the longest first.
var units = []struct {
	name  string
	bytes int64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1}, {"", 1}}

// UnmarshalText reads a number with or without a unit.
func (s *Size) UnmarshalText(text []byte) error {
	for _, unit := range units {
		number, ok := strings.CutSuffix(string(text), unit.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
		if err == nil && n > 0 && n <= 1<<40/unit.bytes {
			*s = Size(n * unit.bytes)
			return nil
		}
		break
	}
	return wrong(string(text), "give a number of bytes such as 1048576 or 1MiB")
}

// String writes the size with the largest unit that divides it.
func (s Size) String() string {
	for _, unit := range []int{2, 1, 0} {
		if u := units[unit]; int64(s)%u.bytes == 0 {
			return strconv.FormatInt(int64(s)/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(int64(s), 10)
}

// Count is a number of at least one.
type Count int

// UnmarshalText reads a number.
func (c *Count) UnmarshalText(text []byte) error {
	n, err := strconv.Atoi(string(text))
	if err != nil || n < 1 {
		return wrong(string(text), "give a number of 1 or more")
	}
	*c = Count(n)
	return nil
}
