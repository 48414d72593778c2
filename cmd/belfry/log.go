package main

import (
	"log/slog"

	"github.com/belfryhq/belfry/cmd/belfry/internal/config"
)

// logger returns what writes the log to Stderr.
func (m *Main) logger(level config.Level, format config.LogFormat) *slog.Logger {
	options := &slog.HandlerOptions{Level: slog.Level(level), ReplaceAttr: nameLevel}
	if format == config.LogText || format == config.LogAuto && m.Terminal {
		return slog.New(slog.NewTextHandler(m.Stderr, options))
	}
	return slog.New(slog.NewJSONHandler(m.Stderr, options))
}

// nameLevel writes the level that slog has no name for by its own.
func nameLevel(groups []string, a slog.Attr) slog.Attr {
	if level, ok := a.Value.Any().(slog.Level); ok && len(groups) == 0 && a.Key == slog.LevelKey && level == config.LevelTrace {
		a.Value = slog.StringValue("TRACE")
	}
	return a
}
