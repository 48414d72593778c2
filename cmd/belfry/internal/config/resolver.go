package config

import (
	"encoding"
	"fmt"
	"reflect"

	"github.com/alecthomas/kong"
)

// Resolver gives kong the values of settings that no flag has set, and remembers where each value came from. It serves one
// command line.
type Resolver struct {
	sources *Sources
	origins map[*kong.Flag]Origin
}

var _ kong.Resolver = (*Resolver)(nil)

// NewResolver returns a resolver that asks the sources.
func NewResolver(sources *Sources) *Resolver {
	return &Resolver{sources: sources, origins: map[*kong.Flag]Origin{}}
}

// Bind checks the keys of the configuration file, if there is one, against all settings of the program.
func (r *Resolver) Bind(app *kong.Application) error {
	if r.sources.file == nil {
		return nil
	}
	keys := map[string]bool{}
	err := kong.Visit(app, func(node kong.Visitable, next kong.Next) error {
		if flag, ok := node.(*kong.Flag); ok {
			if s, ok := settingOf(flag); ok && s.Key != "" {
				keys[s.Key] = true
			}
		}
		return next(nil)
	})
	if err != nil {
		return err
	}
	return r.sources.file.bind(keys)
}

// Validate does nothing: Bind has to come before the values are asked for.
func (r *Resolver) Validate(*kong.Application) error { return nil }

// Resolve returns the text of a setting, or nil. The text is decoded here already, so that the error can name the place.
func (r *Resolver) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	setting, ok := settingOf(flag)
	if !ok {
		return nil, nil
	}
	text, origin, ok := r.sources.lookup(&setting)
	if !ok {
		return nil, nil
	}
	trial := reflect.New(flag.Target.Type()).Elem()
	scan := kong.Scan().PushTyped(text, kong.FlagValueToken)
	if err := flag.Mapper.Decode(&kong.DecodeContext{Value: flag.Value, Scan: scan}, trial); err != nil {
		return nil, named(err, origin.String(), text, setting.Secret)
	}
	r.origins[flag] = origin
	return text, nil
}

// Value is a setting with its present value.
type Value struct {
	Setting
	Text   string // what it is set to or is by default; masked if it is a secret
	Origin Origin
}

// Values are all settings of a command.
type Values []Value

// Place returns where a setting was set, as an error begins with it; its flag when it is the default that is wrong.
func (vs Values) Place(name string) string {
	for _, v := range vs {
		if v.Name != name {
			continue
		}
		switch {
		case v.Origin.Place != Default:
			return v.Origin.String()
		case v.NoFlag && len(v.Vars) > 0:
			return v.Vars[0]
		}
	}
	return "--" + name
}

// IsSet reports whether a setting has a value from anywhere but the default.
func (vs Values) IsSet(name string) bool {
	for _, v := range vs {
		if v.Name == name {
			return v.Origin.Place != Default
		}
	}
	return false
}

// Wrong returns the error of a value that does not go with the others.
func (vs Values) Wrong(name, value, format string, args ...any) error {
	return &Error{Name: vs.Place(name), Value: value, Remedy: fmt.Sprintf(format, args...)}
}

// Values returns the settings of a parsed command with their values. It fails when a flag was given that must not be one.
func (r *Resolver) Values(ctx *kong.Context) (Values, error) {
	given := map[*kong.Flag]bool{}
	for _, path := range ctx.Path {
		if path.Flag != nil && !path.Resolved {
			given[path.Flag] = true
		}
	}
	var values Values
	for _, flag := range ctx.Flags() {
		setting, ok := settingOf(flag)
		if !ok {
			continue
		}
		v := Value{Setting: setting, Text: textOf(flag.Target), Origin: Origin{Place: Default}}
		if origin, ok := r.origins[flag]; ok {
			v.Origin = origin
		}
		if given[flag] {
			if setting.NoFlag {
				return nil, &Error{Name: "--" + flag.Name, Remedy: notAFlag(&setting)}
			}
			v.Origin = Origin{Place: Flag, Name: flag.Name}
		}
		if v.Origin.Place == Default && setting.Default == "" {
			v.Text = "" // the zero value says nothing
		}
		values = append(values, v)
	}
	return values, nil
}

// notAFlag says where else to set something.
func notAFlag(s *Setting) string {
	if s.Secret {
		return fmt.Sprintf("command lines are visible to every process; set %s in the environment or in .env", s.Vars[0])
	}
	return fmt.Sprintf("set %s in the environment or in .env", s.Vars[0])
}

// textOf writes a value as it would be set; a secret masked.
func textOf(target reflect.Value) string {
	switch v := target.Interface().(type) {
	case masker:
		return v.Mask()
	case encoding.TextMarshaler:
		text, err := v.MarshalText()
		if err != nil {
			return ""
		}
		return string(text)
	default:
		return fmt.Sprint(v)
	}
}
