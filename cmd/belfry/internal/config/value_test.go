package config

import (
	"encoding"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestDurationsAreReadInEverySpelling(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"90s": 90 * time.Second, "1h30m": 90 * time.Minute, "7d": 168 * time.Hour, "PT1H30M": 90 * time.Minute, "P30D": 720 * time.Hour,
		"0": 0, "-5s": -5 * time.Second,
	} {
		if got, err := ParseDuration(text); err != nil || got != want {
			t.Errorf("%s: %v %v", text, got, err)
		}
	}
	for _, text := range []string{"", "5", "1M", "P1M", "P1Y", "7 days", "-3d", "99999999999d"} {
		if got, err := ParseDuration(text); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}

func TestAddressesHidePasswordsAndQueries(t *testing.T) {
	for text, want := range map[string]string{
		"sqlite:belfry.db":                   "sqlite:belfry.db",
		"postgres://u:p@h:1/d?sslkey=k":      "postgres://u:***@h:1/d?***",
		"postgres://u@h/d":                   "postgres://u@h/d",
		"nats://u:p@a:1,nats://u:p@b:2":      "nats://u:***@b:2",
		"u:p@h:4222":                         "u:***@h:4222",
		"redis://:p%40ss@h":                  "redis://:***@h",
		"mongodb://u:p@ss:w@rd@h/d":          "mongodb://u:***@h/d",
		"http://user:" + "p" + "@h:80/a?b#c": "http://user:***@h:80/a?***",
	} {
		if got := Address(text).Mask(); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func TestLevelsAreReadAsRustWritesThem(t *testing.T) {
	for text, want := range map[string]slog.Level{
		"trace": LevelTrace, "DEBUG": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "warning": slog.LevelWarn,
		"error": slog.LevelError, "off": LevelOff, "warn,sqlx=error": slog.LevelWarn, "sqlx=error,debug": slog.LevelDebug, "sqlx=debug": slog.LevelInfo,
	} {
		var l Level
		if err := l.UnmarshalText([]byte(text)); err != nil || slog.Level(l) != want {
			t.Errorf("%s: %v %v", text, l, err)
		}
	}
}

func TestSecretsArePrintedAsStars(t *testing.T) {
	secret := "t0p"
	values := []any{NewSecret(secret), APIKey{NewSecret(secret)}, Secrets{NewSecret(secret)}, &Keys{specs: []string{"a:" + secret}, names: []string{"a"}}}
	for _, v := range values {
		text, err := json.Marshal(v)
		if err != nil {
			t.Error(err)
		}
		var log strings.Builder
		slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "v", v)
		for _, printed := range []string{fmt.Sprint(v), fmt.Sprintf("%+v %#v %s %q %x", v, v, v, v, v), string(text), log.String()} {
			if strings.Contains(printed, secret) || strings.Contains(printed, fmt.Sprintf("%x", secret)) {
				t.Errorf("%T: %s", v, printed)
			}
		}
	}
}

// What a value is written as means the same value again.
func FuzzValuesMeanWhatTheyAreWrittenAs(f *testing.F) {
	for _, text := range []string{"30s", "P1D", "forever", "8080", "127.0.0.1:80", "10.0.0.0/8,::1", "443, 80", "debug", "a=1,b*", "1MiB", "1500", "x:9"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, fresh := range []func() encoding.TextUnmarshaler{
			func() encoding.TextUnmarshaler { return new(Duration) },
			func() encoding.TextUnmarshaler { return new(Retention) },
			func() encoding.TextUnmarshaler { return new(Port) },
			func() encoding.TextUnmarshaler { return new(Prefixes) },
			func() encoding.TextUnmarshaler { return new(Ports) },
			func() encoding.TextUnmarshaler { return new(Level) },
			func() encoding.TextUnmarshaler { return new(Queues) },
			func() encoding.TextUnmarshaler { return new(Size) },
		} {
			first, second := fresh(), fresh()
			if first.UnmarshalText([]byte(text)) != nil {
				continue
			}
			written := fmt.Sprint(first)
			if err := second.UnmarshalText([]byte(written)); err != nil || fmt.Sprint(second) != written {
				t.Errorf("%T: %q is written as %q, which is %v %v", first, text, written, second, err)
			}
		}
		_, _ = parseDotEnv([]byte(text))
		_ = new(Keys).UnmarshalText([]byte(text))
		_ = Address(text).Mask()
	})
}
