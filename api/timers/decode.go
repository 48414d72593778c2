package timers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
)

// maxDepth bounds how deeply a request's JSON is nested.
const maxDepth = 32

// decode reads a request's body, one JSON object, into v. Unknown and repeated fields are refused by name.
func (a *api) decode(w http.ResponseWriter, r *http.Request, v any) error {
	if err := checkMediaType(r.Header.Get("Content-Type")); err != nil {
		return err
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, a.s.MaxBody))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return &badRequest{http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is larger than %d bytes", tooLarge.Limit)}
	}
	if err != nil {
		return bad("the body could not be read to its end")
	}
	return parse(body, v)
}

func checkMediaType(header string) error {
	if header == "" {
		return nil
	}
	media, _, err := mime.ParseMediaType(header)
	if err != nil || media != "application/json" && !strings.HasSuffix(media, "+json") {
		return &badRequest{http.StatusUnsupportedMediaType, fmt.Sprintf("content type %.64q is not JSON: send application/json", header)}
	}
	return nil
}

// parse reads one JSON object into v.
func parse(body []byte, v any) error {
	if err := scan(body); err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(v)
	var wrongType *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrongType):
		return bad("field %s at offset %d must not be a JSON %s", wrongType.Field, wrongType.Offset, wrongType.Value)
	case strings.HasPrefix(err.Error(), "json: unknown field "):
		return bad("unknown field %s", strings.TrimPrefix(err.Error(), "json: unknown field "))
	default:
		return bad("the body cannot be read: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
}

// scan checks that the body is one JSON object, nested within bounds, without repeated fields.
func scan(body []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	s := scanner{decoder: decoder}
	if err := s.value(0); err != nil {
		var bad *badRequest
		if errors.As(err, &bad) {
			return err
		}
		return notJSON(decoder.InputOffset(), err)
	}
	if !s.object {
		return bad("the body must be a JSON object, not another value (offset 0)")
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return bad("the body must be one JSON object: more follows at offset %d", decoder.InputOffset())
	}
	return nil
}

func notJSON(offset int64, err error) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return bad("the body is not JSON: %s at offset %d", syntax.Error(), syntax.Offset)
	}
	return bad("the body is not JSON: it ends too early at offset %d", offset)
}

// scanner walks over one JSON value.
type scanner struct {
	decoder *json.Decoder
	object  bool // the value is an object
}

func (s *scanner) value(depth int) error {
	token, err := s.decoder.Token()
	if err != nil {
		return err
	}
	delim, nested := token.(json.Delim)
	if !nested {
		return nil
	}
	if depth == maxDepth {
		return bad("the body is nested deeper than %d levels at offset %d", maxDepth, s.decoder.InputOffset())
	}
	s.object = delim == '{'
	if err := s.members(delim == '{', depth); err != nil {
		return err
	}
	s.object = delim == '{'
	_, err = s.decoder.Token()
	return err
}

// members walks over what is between the brackets.
func (s *scanner) members(object bool, depth int) error {
	seen := map[string]bool{}
	for s.decoder.More() {
		if object {
			token, err := s.decoder.Token()
			if err != nil {
				return err
			}
			name, _ := token.(string)
			if seen[name] {
				return bad("field %.64q is given twice (offset %d)", name, s.decoder.InputOffset())
			}
			seen[name] = true
		}
		if err := s.value(depth + 1); err != nil {
			return err
		}
	}
	return nil
}
