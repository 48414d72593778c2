package body

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"unicode/utf8"
)

// maxDepth bounds how deeply a body is nested.
const maxDepth = 32

// scan checks that the text is one JSON object in UTF-8, nested within bounds, without repeated fields and, where it is read
// into a struct, with that struct's fields alone. Package encoding/json would take a field in any case, the last of
// several, null for a string, and bytes that are no UTF-8.
func scan(text []byte, t reflect.Type) error {
	if at := firstInvalid(text); at >= 0 {
		return Bad("the body is not UTF-8 at offset %d", at)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	s := scanner{decoder: decoder}
	if err := s.value("", t, 0); err != nil {
		var known *Error
		if errors.As(err, &known) {
			return err
		}
		return notJSON(decoder.InputOffset(), err)
	}
	if !s.object {
		return Bad("the body must be a JSON object, not another value (offset 0)")
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return Bad("the body must be one JSON object: more follows at offset %d", decoder.InputOffset())
	}
	return s.wrong
}

// firstInvalid returns where the text stops being UTF-8, or -1.
func firstInvalid(text []byte) int {
	for i := 0; i < len(text); {
		if text[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, size := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return -1
}

func notJSON(offset int64, err error) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return Bad("the body is not JSON: %s at offset %d", syntax.Error(), syntax.Offset)
	}
	return Bad("the body is not JSON: it ends too early at offset %d", offset)
}

// scanner walks over one JSON value.
type scanner struct {
	decoder *json.Decoder
	object  bool  // the value is an object
	wrong   error // the first thing that is wrong with what is JSON all the same
}

// find notes what is wrong, unless something was before.
func (s *scanner) find(format string, args ...any) {
	if s.wrong == nil {
		s.wrong = Bad(format, args...)
	}
}

// value walks over a value at a path that is read into the type; nil: into none that is known.
func (s *scanner) value(path string, t reflect.Type, depth int) error {
	token, err := s.decoder.Token()
	if err != nil {
		return err
	}
	delim, nested := token.(json.Delim)
	if !nested {
		if token == nil && t != nil && t.Kind() == reflect.String {
			s.find("field %.128s at offset %d must be a string, not null", path, s.decoder.InputOffset())
		}
		return nil
	}
	if depth == maxDepth {
		return Bad("the body is nested deeper than %d levels at offset %d", maxDepth, s.decoder.InputOffset())
	}
	if delim == '{' {
		err = s.members(path, t, depth)
	} else {
		err = s.elements(path, t, depth)
	}
	if err != nil {
		return err
	}
	s.object = delim == '{'
	_, err = s.decoder.Token()
	return err
}

// members walks over the members of an object.
func (s *scanner) members(path string, t reflect.Type, depth int) error {
	seen := map[string]bool{}
	fields := fieldsOf(t)
	for s.decoder.More() {
		token, err := s.decoder.Token()
		if err != nil {
			return err
		}
		name, _ := token.(string)
		if seen[name] {
			s.find("field %.64q is given twice (offset %d)", name, s.decoder.InputOffset())
		}
		seen[name] = true
		member, known := fields[name]
		if fields != nil && !known {
			s.find("unknown field %.64q%s (offset %d)", name, within(path), s.decoder.InputOffset())
		}
		if t != nil && t.Kind() == reflect.Map {
			member = t.Elem()
		} else if known && member.Kind() == reflect.String {
			member = nil // null says that it is absent
		}
		full := strings.TrimPrefix(path+"."+name, ".")
		if err := s.value(full, plain(member), depth+1); err != nil {
			return err
		}
	}
	return nil
}

func within(path string) string {
	if path == "" {
		return ""
	}
	return " in " + path
}

// elements walks over the elements of an array.
func (s *scanner) elements(path string, t reflect.Type, depth int) error {
	var element reflect.Type
	if t != nil && t.Kind() == reflect.Slice {
		element = plain(t.Elem())
	}
	for s.decoder.More() {
		if err := s.value(path, element, depth+1); err != nil {
			return err
		}
	}
	return nil
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// plain returns what encoding/json looks into by itself: a pointer to a struct leads to that struct; a type that reads itself
// and a pointer to anything else, where null says that there is none, are nil.
func plain(t reflect.Type) reflect.Type {
	switch {
	case t == nil || reflect.PointerTo(t).Implements(unmarshaler):
		return nil
	case t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct:
		return plain(t.Elem())
	case t.Kind() == reflect.Pointer:
		return nil
	}
	return t
}

// fieldsOf returns the types of a struct's fields by their names in JSON; nil: it is no struct.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	if t == nil || t.Kind() != reflect.Struct {
		return nil
	}
	fields := map[string]reflect.Type{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous || !f.IsExported() || name == "-":
		case name == "":
			fields[f.Name] = f.Type
		default:
			fields[name] = f.Type
		}
	}
	return fields
}
