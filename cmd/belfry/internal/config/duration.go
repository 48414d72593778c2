package config

import (
	"strconv"
	"strings"
	"time"

	iso "github.com/sosodev/duration"

	"github.com/belfryhq/belfry/store"
)

// ParseDuration reads a span of time: as Go writes it (90s, 1h30m), in days (30d), or by ISO 8601 (PT1H30M, P30D).
func ParseDuration(text string) (time.Duration, error) {
	text = strings.TrimSpace(text)
	d, ok := parseDuration(text)
	if !ok {
		return 0, wrong(text, "give a duration such as 30s, 1h30m, 7d or PT1H30M")
	}
	return d, nil
}

func parseDuration(text string) (time.Duration, bool) {
	if d, err := time.ParseDuration(text); err == nil {
		return d, true
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		return time.Duration(n) * 24 * time.Hour, err == nil
	}
	if strings.HasPrefix(text, "P") {
		d, err := iso.Parse(text)
		if err != nil || d.Years != 0 || d.Months != 0 { // how long those are depends on when they begin
			return 0, false
		}
		return d.ToTimeDuration(), true
	}
	return 0, false
}

// Duration is a span of time that is not negative.
type Duration time.Duration

// UnmarshalText reads a duration.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := ParseDuration(string(text))
	if err != nil {
		return err
	}
	if v < 0 {
		return wrong(string(text), "must not be negative")
	}
	*d = Duration(v)
	return nil
}

// String writes the duration as Go does.
func (d Duration) String() string { return time.Duration(d).String() }

// Retention is how long something is kept.
type Retention time.Duration

// forever is the word for store.Forever.
const forever = "forever"

// UnmarshalText reads a duration or the word forever.
func (r *Retention) UnmarshalText(text []byte) error {
	if string(text) == forever {
		*r = Retention(store.Forever)
		return nil
	}
	var d Duration
	if err := d.UnmarshalText(text); err != nil || d == 0 {
		return wrong(string(text), "give a duration such as 720h or 30d, longer than none, or forever")
	}
	*r = Retention(d)
	return nil
}

// String writes the duration, or forever.
func (r Retention) String() string {
	if time.Duration(r) == store.Forever {
		return forever
	}
	return time.Duration(r).String()
}
