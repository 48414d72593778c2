package config

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/belfryhq/belfry/api/auth"
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

// Keys are API keys with the names under which their use is logged.
type Keys struct {
	specs []string
	names []string
}

// UnmarshalText reads name:key or name:sha256:<hash>, separated by commas. Its errors repeat no key.
func (k *Keys) UnmarshalText(text []byte) error {
	specs := items(string(text))
	if _, err := auth.Parse(specs...); err != nil {
		return wrong("", "%v", err)
	}
	*k = Keys{specs: specs}
	for _, spec := range specs {
		name, _, _ := strings.Cut(spec, ":")
		k.names = append(k.names, name)
	}
	return nil
}

// Specs returns the keys as auth.Parse reads them.
func (k Keys) Specs() []string { return k.specs }

// Mask returns the names.
func (k Keys) Mask() string {
	return join(k.names, func(name string) string { return name + ":" + masked })
}

// String returns the mask.
func (k Keys) String() string { return k.Mask() }

// Format writes the mask whatever the verb.
func (k Keys) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(k.Mask())) }

// APIKey is one API key.
type APIKey struct{ Secret }

// UnmarshalText refuses keys that could be guessed, and those that a header cannot carry.
func (k *APIKey) UnmarshalText(text []byte) error {
	if len(text) < auth.MinKey {
		return wrong("", "the key has %d characters and needs at least %d; make one with: openssl rand -hex 32", len(text), auth.MinKey)
	}
	for i, c := range text {
		if c <= ' ' || c > '~' {
			return wrong("", "character %d of the key is not printable ASCII; make one with: openssl rand -hex 32", i+1)
		}
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
