// Package body reads the bodies of the APIs' requests, strictly: one JSON object in UTF-8, nested within bounds, every field
// spelled as it is documented and given once. What a client misspells is refused by name instead of being ignored.
package body

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"reflect"
	"strings"
)

// Error is what is wrong with a request: the status to answer with and the text for the caller.
type Error struct {
	Status int
	Text   string
}

// Error returns the text.
func (e *Error) Error() string { return e.Text }

// Bad returns the Error of a request that cannot be understood, with the status 400.
func Bad(format string, args ...any) error {
	return &Error{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}

// Read reads the body of a request, of at most limit bytes, into v, a pointer to a struct. Every error is an *Error.
func Read(w http.ResponseWriter, r *http.Request, limit int64, v any) error {
	if err := checkMediaType(r.Header.Get("Content-Type")); err != nil {
		return err
	}
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return &Error{http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is larger than %d bytes", tooLarge.Limit)}
	}
	if err != nil {
		return Bad("the body could not be read to its end")
	}
	return Parse(text, v)
}

func checkMediaType(header string) error {
	if header == "" {
		return nil
	}
	media, _, err := mime.ParseMediaType(header)
	if err != nil || media != "application/json" && !strings.HasSuffix(media, "+json") {
		return &Error{http.StatusUnsupportedMediaType, fmt.Sprintf("content type %.64q is not JSON: send application/json", header)}
	}
	return nil
}

// Parse reads one JSON object into v, a pointer to a struct. Every error is an *Error.
func Parse(text []byte, v any) error {
	if err := scan(text, reflect.TypeOf(v).Elem()); err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields() // the scan has found them; this is for what it does not look into
	err := decoder.Decode(v)
	var wrongType *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrongType):
		return Bad("field %s at offset %d must be %s, not a JSON %s",
			ownName(wrongType.Field, reflect.TypeOf(v).Elem()), wrongType.Offset, wanted(wrongType.Type), wrongType.Value)
	default:
		return Bad("the body cannot be read: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
}

// ownName returns the path of a field without the names of embedded structs, which no client knows of.
func ownName(path string, t reflect.Type) string {
	for i := range t.NumField() {
		if f := t.Field(i); f.Anonymous {
			path = strings.TrimPrefix(path, f.Name+".")
		}
	}
	return path
}

// wanted says what JSON a Go type is read from.
func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return wanted(t.Elem())
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return fmt.Sprintf("a whole number of %d bits", t.Bits())
	default:
		return "a number"
	}
}
