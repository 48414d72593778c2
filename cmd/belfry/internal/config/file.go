package config

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

// file is a configuration file.
type file struct {
	name   string
	tree   map[string]any
	values map[string]string // of known keys
}

// ReadFile adds the configuration file at the path, which must exist. Keys are checked once the settings are known.
func (s *Sources) ReadFile(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return &Error{Name: path, Remedy: reason(err) + "; give the path of a YAML file"}
	}
	f := &file{name: filepath.Base(path), tree: map[string]any{}, values: map[string]string{}}
	if err := yaml.Unmarshal(text, &f.tree); err != nil {
		return &Error{Name: f.name, Remedy: "is no YAML mapping: " + yamlReason(err)}
	}
	s.file = f
	return nil
}

// yamlReason returns the place and the first line of what is wrong with a YAML text; the lines after it quote the text.
func yamlReason(err error) string {
	if syntax := (yaml.Error)(nil); errors.As(err, &syntax) {
		text := syntax.GetMessage()
		if at := syntax.GetToken(); at != nil && at.Position != nil {
			return fmt.Sprintf("line %d: %s", at.Position.Line, text)
		}
		return text
	}
	return "it cannot be read"
}

// bind reads the values of the keys and refuses what is none of them.
func (f *file) bind(keys map[string]bool) error {
	return f.bindTree("", f.tree, keys)
}

func (f *file) bindTree(prefix string, tree map[string]any, keys map[string]bool) error {
	for _, name := range sortedKeys(tree) {
		key := prefix + name
		if keys[key] {
			text, err := scalar(tree[name])
			if err != nil {
				return &Error{Name: f.name + ": " + key, Remedy: err.Error()}
			}
			if text != "" {
				f.values[key] = text
			}
			continue
		}
		child, isTree := tree[name].(map[string]any)
		if !isTree || !hasPrefix(keys, key+".") {
			return &Error{Name: f.name + ": " + key, Remedy: "is no setting; `belfry config` lists them"}
		}
		if err := f.bindTree(key+".", child, keys); err != nil {
			return err
		}
	}
	return nil
}

// scalar writes a value of the file as a variable would have it: lists with commas, mappings as name=value.
func scalar(value any) (string, error) {
	switch v := value.(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	case []any:
		items := make([]string, len(v))
		for i, item := range v {
			text, err := element(item)
			if err != nil {
				return "", err
			}
			items[i] = text
		}
		return strings.Join(items, ","), nil
	case map[string]any:
		pairs := make([]string, 0, len(v))
		for _, name := range sortedKeys(v) {
			text, err := element(v[name])
			if err != nil {
				return "", err
			}
			pairs = append(pairs, name+"="+text)
		}
		return strings.Join(pairs, ","), nil
	default:
		return fmt.Sprint(v), nil
	}
}

// element writes an element of a list or mapping.
func element(value any) (string, error) {
	switch value.(type) {
	case []any, map[string]any:
		return "", errors.New("is nested too deeply; give a value, a list of values, or names with values")
	}
	return scalar(value)
}

func hasPrefix(keys map[string]bool, prefix string) bool {
	for key := range keys {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
