package telemetry

import (
	"maps"
	"strings"

	"github.com/belfryhq/belfry/target"
)

// params are a message's params as the carrier of its trace.
type params map[string]string

// Get returns what a propagator has written.
func (p params) Get(key string) string { return p[target.TracePrefix+key] }

// Set writes for a propagator.
func (p params) Set(key, value string) { p[target.TracePrefix+key] = value }

// Keys returns the names that propagators have written.
func (p params) Keys() []string {
	var keys []string
	for name := range p {
		if key, ok := strings.CutPrefix(name, target.TracePrefix); ok {
			keys = append(keys, key)
		}
	}
	return keys
}

// traced reports whether there is a trace in the params.
func (p params) traced() bool {
	for name := range p {
		if strings.HasPrefix(name, target.TracePrefix) {
			return true
		}
	}
	return false
}

// settings returns the params without the trace: the user's own.
func (p params) settings() map[string]string {
	if !p.traced() {
		return p
	}
	rest := maps.Clone(p)
	maps.DeleteFunc(rest, func(name, _ string) bool { return strings.HasPrefix(name, target.TracePrefix) })
	return rest
}

// roomy returns a copy with room for some more pairs.
func roomy(pairs map[string]string, more int) map[string]string {
	room := make(map[string]string, len(pairs)+more)
	maps.Copy(room, pairs)
	return room
}
