package config

import (
	"log/slog"
	"strings"
)

// LevelTrace is below slog's debug: each request and each claim.
const LevelTrace = slog.LevelDebug - 4

// LevelOff is above all that is logged.
const LevelOff = slog.LevelError + 100

// Level is how much is logged.
type Level slog.Level

var levels = []struct {
	name  string
	level slog.Level
}{
	{"trace", LevelTrace},
	{"debug", slog.LevelDebug},
	{"info", slog.LevelInfo},
	{"warn", slog.LevelWarn},
	{"error", slog.LevelError},
	{"off", LevelOff},
}

// UnmarshalText reads the name of a level. Of a list of directives as RUST_LOG has them, such as warn,sqlx=error, the last
// one without a module counts; where all have one, the level is info.
func (l *Level) UnmarshalText(text []byte) error {
	name := "info"
	for _, directive := range items(strings.ToLower(string(text))) {
		if !strings.Contains(directive, "=") {
			name = directive
		}
	}
	for _, known := range levels {
		if known.name == name || name == "warning" && known.name == "warn" {
			*l = Level(known.level)
			return nil
		}
	}
	return wrong(string(text), "give trace, debug, info, warn, error or off")
}

// String returns the level's name.
func (l Level) String() string {
	for _, known := range levels {
		if known.level == slog.Level(l) {
			return known.name
		}
	}
	return slog.Level(l).String()
}

// LogFormat is how log lines are written.
type LogFormat string

// The formats.
const (
	LogAuto LogFormat = "auto" // text on a terminal, else JSON
	LogText LogFormat = "text"
	LogJSON LogFormat = "json"
)

// UnmarshalText reads the name of a format.
func (f *LogFormat) UnmarshalText(text []byte) error {
	return choose((*string)(f), string(text), string(LogAuto), string(LogText), string(LogJSON))
}

// Durability is what a store must be able to promise for the program to start.
type Durability string

// The demands.
const (
	DurabilityAny    Durability = "any"
	DurabilityStrict Durability = "strict" // survives a power cut
)

// UnmarshalText reads the name of a demand.
func (d *Durability) UnmarshalText(text []byte) error {
	return choose((*string)(d), string(text), string(DurabilityAny), string(DurabilityStrict))
}

// choose takes a value that is one of several words.
func choose(dst *string, value string, words ...string) error {
	for _, word := range words {
		if value == word {
			*dst = value
			return nil
		}
	}
	last := len(words) - 1
	return wrong(value, "give %s or %s", strings.Join(words[:last], ", "), words[last])
}
