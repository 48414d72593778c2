package sqlitestore

import "time"

// Settings are how a file is opened. The zero value is right for most.
type Settings struct {
	// Synchronous is when SQLite waits for the disk; zero: Full.
	Synchronous Synchronous
	// Readers is how many reads can run at once; zero: 4.
	Readers int
	// Cache is how many bytes of the file the writer keeps in memory; zero: 64 MiB. Each reader has an eighth of it.
	Cache int64
	// Log is how large the write-ahead log may become while it is in use, in bytes; zero: 64 MiB. A read that lasts
	// long can make it larger.
	Log int64
	// BusyTimeout is how long to wait for another program that holds the file's write lock, such as a backup by
	// sqlite3; zero: 5 s. After that the operation fails.
	BusyTimeout time.Duration
}

// Synchronous is when SQLite waits for the disk.
type Synchronous int

// The modes.
const (
	// Full waits with every commit: what was acknowledged survives a power cut.
	Full Synchronous = iota
	// Normal waits with checkpoints only: a power cut may take the last seconds.
	Normal
)

// String returns the mode as SQLite writes it.
func (s Synchronous) String() string {
	if s == Normal {
		return "NORMAL"
	}
	return "FULL"
}

// withDefaults returns the settings with nothing left open.
func (s Settings) withDefaults() Settings {
	set := func(v *int64, zero int64) {
		if *v <= 0 {
			*v = zero
		}
	}
	set(&s.Cache, 64<<20)
	set(&s.Log, 64<<20)
	set((*int64)(&s.BusyTimeout), int64(5*time.Second))
	if s.Readers <= 0 {
		s.Readers = 4
	}
	return s
}
