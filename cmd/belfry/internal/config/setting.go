package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// Setting is what one setting is called in each place.
type Setting struct {
	Name    string   // what it is called in the program, and its flag without dashes
	NoFlag  bool     // it cannot be given on the command line
	Vars    []string // environment variables, the preferred one first
	Key     string   // in the file; empty: it has none
	Default string   // empty: none
	Unset   string   // what counts without a value, in words, where Default does not say it
	Help    string
	Group   string
	Secret  bool
}

// prefix begins the names of Belfry's own environment variables.
const prefix = "BELFRY_"

// settingOf returns what a flag of a command is called elsewhere; false: it is no setting.
func settingOf(flag *kong.Flag) (Setting, bool) {
	if !flag.Tag.Has("key") {
		return Setting{}, false
	}
	s := Setting{
		Name: flag.Name, NoFlag: flag.Tag.Has("noflag"), Key: flag.Tag.Get("key"), Default: flag.Default, Unset: flag.Tag.Get("unset"),
		Help: flag.Help, Secret: isSecret(flag),
	}
	if s.Key == "-" {
		s.Key = ""
	}
	if flag.Group != nil {
		s.Group = flag.Group.Title
	}
	switch vars := flag.Tag.Get("var"); vars {
	case "":
		s.Vars = []string{prefix + strings.ToUpper(strings.ReplaceAll(flag.Name, "-", "_"))}
	case "-":
	default:
		s.Vars = strings.Split(vars, ",")
	}
	return s, true
}

// masker is a value that is not to be told. Mask returns what may be.
type masker interface{ Mask() string }

func isSecret(flag *kong.Flag) bool {
	_, ok := flag.Target.Interface().(masker)
	return ok
}

// Settings returns the settings of a command and of those around it, in the order of their declaration.
func Settings(node *kong.Node) []Setting {
	var all []Setting
	for _, flags := range node.AllFlags(false) {
		for _, flag := range flags {
			if s, ok := settingOf(flag); ok {
				all = append(all, s)
			}
		}
	}
	return all
}

// FlagName returns the flag with its dashes; empty: it has none.
func (s *Setting) FlagName() string {
	if s.NoFlag {
		return ""
	}
	return "--" + s.Name
}

// Usual returns what counts when nothing is set; empty: nothing does.
func (s *Setting) Usual() string {
	if s.Unset != "" {
		return s.Unset
	}
	return s.Default
}

// Help writes a flag's help with the variables and the default.
func Help(value *kong.Value) string {
	if value.Flag == nil {
		return kong.DefaultHelpValueFormatter(value)
	}
	s, ok := settingOf(value.Flag)
	if !ok {
		return kong.DefaultHelpValueFormatter(value)
	}
	notes := s.Vars
	if usual := s.Usual(); usual != "" {
		notes = append(slices.Clone(notes), "default: "+usual)
	}
	if len(notes) == 0 {
		return s.Help
	}
	return fmt.Sprintf("%s (%s)", s.Help, strings.Join(notes, "; "))
}
