package config

// Place is a kind of source.
type Place string

// The places, the strongest first.
const (
	Flag        Place = "flag"
	Environment Place = "environment"
	DotEnvFile  Place = ".env"
	File        Place = "file"
	Default     Place = "default"
)

// Origin is where a value was set.
type Origin struct {
	Place Place
	Name  string // of the flag, the variable or the key; empty: nothing was set
	file  string
}

// String returns the origin as an error begins with it.
func (o Origin) String() string {
	switch o.Place {
	case Flag:
		return "--" + o.Name
	case Environment:
		return o.Name
	case DotEnvFile:
		return DotEnv + ": " + o.Name
	case File:
		return o.file + ": " + o.Name
	default:
		return string(Default)
	}
}
