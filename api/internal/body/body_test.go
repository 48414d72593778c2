package body_test

import (
	"encoding/json"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/belfryhq/belfry/api/internal/body"
)

// inner and outer have what the APIs' requests have.
type inner struct {
	Type    string            `json:"type"`
	URL     *string           `json:"url"`
	Headers map[string]string `json:"headers"`
	Any     json.RawMessage   `json:"any"`
}

type embedded struct {
	Name *string `json:"name"`
	Call *inner  `json:"call"`
}

type outer struct {
	embedded

	Count int        `json:"count"`
	At    *time.Time `json:"at"`
	List  []inner    `json:"list"`
	Raw   []byte     `json:"raw"`
}

func TestOnlyWhatIsDocumentedIsRead(t *testing.T) {
	for name, c := range map[string]struct{ text, says string }{
		"a field in another case":             {`{"NAME":"a"}`, `unknown field "NAME"`},
		"a field twice, once in other case":   {`{"name":"a","Name":"b"}`, `unknown field "Name"`},
		"an unknown field":                    {`{"nam":1}`, `unknown field "nam"`},
		"an unknown inner field":              {`{"call":{"typ":1}}`, `unknown field "typ" in call`},
		"an inner field in another case":      {`{"call":{"URL":"a"}}`, `unknown field "URL" in call`},
		"an unknown field in a list":          {`{"list":[{},{"x":1}]}`, `unknown field "x" in list`},
		"a field twice":                       {`{"name":"a","name":"b"}`, `"name" is given twice`},
		"a field twice in any JSON":           {`{"call":{"any":[{"a":1,"a":2}]}}`, `"a" is given twice`},
		"the name of an embedded struct":      {`{"embedded":{}}`, `unknown field "embedded"`},
		"null for a string of a map":          {`{"call":{"headers":{"A":null}}}`, "call.headers.A at offset"},
		"a number for a string of a map":      {`{"call":{"headers":{"A":5}}}`, "call.headers at offset"},
		"a number for a string":               {`{"name":5}`, "field name at offset 9 must be a string, not a JSON number"},
		"a string for an object":              {`{"call":"x"}`, "field call at offset 11 must be an object, not a JSON string"},
		"a fraction for a whole number":       {`{"count":1.5}`, "must be a whole number of 64 bits"},
		"a number that is too large":          {`{"count":1e99}`, "must be a whole number of 64 bits"},
		"bytes that are no UTF-8":             {"{\"call\":{\"any\":\"\xff\"}}", "not UTF-8 at offset 16"},
		"a surrogate in UTF-8":                {"{\"name\":\"\xed\xa0\x80\"}", "not UTF-8 at offset 9"},
		"null":                                {`null`, "must be a JSON object"},
		"an array":                            {`[{}]`, "must be a JSON object"},
		"a string":                            {`"x"`, "must be a JSON object"},
		"nothing":                             {``, "not JSON"},
		"an object cut off":                   {`{"name":`, "ends too early at offset"},
		"no JSON before an unknown field":     {`{"x":}`, "offset 5"},
		"two objects":                         {`{} {}`, "more follows"},
		"an object with a comma too many":     {`{"name":"a",}`, "not JSON"},
		"deep nesting":                        {`{"call":{"any":` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `}}`, "deeper than 32"},
		"deep nesting that would take memory": {`{"a":` + strings.Repeat("[", 1<<20), "deeper than 32"},
	} {
		t.Run(name, func(t *testing.T) {
			var v outer
			err := body.Parse([]byte(c.text), &v)
			var wrong *body.Error
			if !errors.As(err, &wrong) || wrong.Status != 400 || !strings.Contains(wrong.Text, c.says) {
				t.Errorf("the error is %v, want 400 and %q", err, c.says)
			}
		})
	}
}

func TestWhatIsDocumentedIsReadAsItStands(t *testing.T) {
	var v outer
	text := `{"name":null,"count":3,"at":"2030-01-01T00:00:00Z","raw":"AP8=","list":[{"type":"a"}],
		"call":{"type":null,"url":"ü","headers":{"A":"1","a":"2"},"any":{"Any":[1e999, "\u0000\ud800"],"any":null}}}`
	if err := body.Parse([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	if v.Name != nil || v.Count != 3 || v.At.Year() != 2030 || string(v.Raw) != "\x00\xff" || v.List[0].Type != "a" ||
		*v.Call.URL != "ü" || len(v.Call.Headers) != 2 || string(v.Call.Any) != `{"Any":[1e999, "\u0000\ud800"],"any":null}` {
		t.Errorf("read %+v", v)
	}
}

func TestABodyIsJSONWithinItsLimit(t *testing.T) {
	for name, c := range map[string]struct {
		media, text string
		status      int
	}{
		"no type":                {"", `{}`, 0},
		"a type with parameters": {"application/json; charset=utf-8", `{}`, 0},
		"a type that is JSON":    {"application/merge-patch+json", `{}`, 0},
		"a form":                 {"application/x-www-form-urlencoded", `{}`, 415},
		"a type that is none":    {"json;;", `{}`, 415},
		"as large as allowed":    {"application/json", `{"name":"x"}`, 0},
		"larger":                 {"application/json", `{"name":"xy"}`, 413},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest("POST", "/", strings.NewReader(c.text))
			r.Header.Set("Content-Type", c.media)
			var v outer
			err := body.Read(httptest.NewRecorder(), r, 12, &v)
			var wrong *body.Error
			if errors.As(err, &wrong); err != nil && wrong.Status != c.status || err == nil && c.status != 0 {
				t.Errorf("the error is %v, want %d", err, c.status)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add(`{"name":"a","call":{"headers":{"A":"b"},"any":[1,{"a":null}]},"list":[{"type":"a"},null]}`)
	f.Add(`{"at":"2030-01-01T00:00:00Z","raw":"AA==","count":1e2}`)
	f.Add("{\"\xff\":1}")
	f.Fuzz(func(t *testing.T, text string) {
		var v outer
		err := body.Parse([]byte(text), &v)
		var wrong *body.Error
		if err != nil && !errors.As(err, &wrong) {
			t.Errorf("%q: %v is no *Error", text, err)
		}
		if err == nil && !json.Valid([]byte(text)) {
			t.Errorf("%q was read and is not JSON", text)
		}
	})
}
