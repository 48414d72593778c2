package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/joho/godotenv"
)

// Sources are the places besides the command line where settings are looked for.
type Sources struct {
	env    map[string]string
	dotEnv map[string]string
	file   *file // nil: there is none
}

// DotEnv is the name of the file of environment variables in the working folder.
const DotEnv = ".env"

// NewSources returns the sources of a process with an environment ("NAME=value" each) that has the contents of .env at the
// path; a missing one is an empty one.
func NewSources(environ []string, dotEnvPath string) (*Sources, error) {
	s := &Sources{env: make(map[string]string, len(environ))}
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		s.env[name] = value
	}
	text, err := os.ReadFile(dotEnvPath)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, &Error{Name: DotEnv, Remedy: reason(err)}
	}
	s.dotEnv, err = parseDotEnv(text)
	return s, err
}

// parseDotEnv reads the variables in a .env file. The errors of the parser quote the file, secrets included, so what is told
// is only the line up to which it can be read.
func parseDotEnv(text []byte) (map[string]string, error) {
	vars, err := godotenv.UnmarshalBytes(text)
	if err == nil {
		return vars, nil
	}
	lines := strings.SplitAfter(string(text), "\n")
	good := 0
	for n := 1; n < len(lines); n++ {
		if _, err := godotenv.Unmarshal(strings.Join(lines[:n], "")); err == nil {
			good = n
		}
	}
	return nil, &Error{Name: DotEnv, Remedy: fmt.Sprintf("line %d cannot be read; write NAME=value, with quotes around values that have blanks or quotes", good+1)}
}

// reason returns why a file could not be used, without its name.
func reason(err error) string {
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		return path.Err.Error()
	}
	return err.Error()
}

// Var returns the value of a variable and where it was set; one that is set to nothing counts as not set.
func (s *Sources) Var(name string) (value string, origin Origin, ok bool) {
	if value := s.env[name]; value != "" {
		return value, Origin{Place: Environment, Name: name}, true
	}
	if value := s.dotEnv[name]; value != "" {
		return value, Origin{Place: DotEnvFile, Name: name}, true
	}
	return "", Origin{}, false
}

// lookup returns a setting's value and where it was set.
func (s *Sources) lookup(setting *Setting) (value string, origin Origin, ok bool) {
	for _, name := range setting.Vars {
		if value, origin, ok = s.Var(name); ok {
			return value, origin, true
		}
	}
	if s.file != nil && setting.Key != "" {
		if value, ok = s.file.values[setting.Key]; ok {
			return value, Origin{Place: File, Name: setting.Key, file: s.file.name}, true
		}
	}
	return "", Origin{}, false
}

// Unknown returns the variables that begin like Belfry's own and are none: misspelled, most likely.
func (s *Sources) Unknown(settings Values, others ...string) []string {
	known := map[string]bool{}
	for _, name := range others {
		known[name] = true
	}
	for _, setting := range settings {
		for _, name := range setting.Vars {
			known[name] = true
		}
	}
	unknown := map[string]bool{}
	for _, vars := range []map[string]string{s.env, s.dotEnv} {
		for name := range vars {
			if strings.HasPrefix(name, prefix) && !known[name] {
				unknown[name] = true
			}
		}
	}
	return sortedKeys(unknown)
}
