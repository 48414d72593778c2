package storetest

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/belfryhq/belfry/store"
)

// owned are the fields of a message that a store sets itself.
var owned = []string{"Version", "VisibleAt", "UpdatedAt", "Owner", "Epoch", "Stop", "Waits"}

// diff tells how two messages differ, fields named in but apart; empty: they do not. Every field counts, those that
// are added to Message later too. Empty and nil are the same but for Payload.
func diff(got, want store.Message, but ...string) string {
	var out []string
	g, w := reflect.ValueOf(got), reflect.ValueOf(want)
	for i := range g.NumField() {
		name := g.Type().Field(i).Name
		if slices.Contains(but, name) {
			continue
		}
		differs := !alike(g.Field(i), w.Field(i))
		if name == "Payload" {
			differs = differs || (got.Payload == nil) != (want.Payload == nil)
		}
		if differs {
			out = append(out, fmt.Sprintf("%s is %s, want %s", name, brief(g.Field(i).Interface()), brief(w.Field(i).Interface())))
		}
	}
	return strings.Join(out, "; ")
}

// alike compares two values of one type; instants by what they mean.
func alike(a, b reflect.Value) bool {
	if t, ok := a.Interface().(time.Time); ok {
		return t.Equal(b.Interface().(time.Time))
	}
	if p, ok := a.Interface().([]byte); ok {
		return bytes.Equal(p, b.Bytes())
	}
	switch a.Kind() {
	case reflect.Struct:
		for i := range a.NumField() {
			if !alike(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	case reflect.Slice:
		if a.Len() != b.Len() {
			return false
		}
		for i := range a.Len() {
			if !alike(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return true
	case reflect.Map:
		return a.Len() == 0 && b.Len() == 0 || reflect.DeepEqual(a.Interface(), b.Interface())
	default:
		return reflect.DeepEqual(a.Interface(), b.Interface())
	}
}

// brief returns a value as text that fits a line.
func brief(v any) string {
	var s string
	switch v := v.(type) {
	case time.Time:
		s = v.UTC().Format("2006-01-02T15:04:05.000000Z")
	case []byte:
		if v == nil {
			return "nil bytes"
		}
		s = fmt.Sprintf("%d bytes %.60q", len(v), v)
	case string:
		s = fmt.Sprintf("%q", v)
	case []string:
		s = fmt.Sprintf("%d: %q", len(v), v)
	default:
		s = fmt.Sprintf("%+v", v)
	}
	if len(s) > 300 {
		s = s[:300] + "…"
	}
	return s
}

// fill sets every field of a message to a value of its own that is not its zero one, instants to ones after start.
// State and Gate stay as they are: what they may be depends on the rest. It panics on a kind of field it does not
// know, so that no field that is added later goes without a round trip.
func fill(m *store.Message, seed int) {
	v := reflect.ValueOf(m).Elem()
	for i := range v.NumField() {
		switch v.Type().Field(i).Name {
		case "State", "Gate":
		default:
			fillValue(v.Field(i), seed*1000+i*20)
		}
	}
}

func fillValue(v reflect.Value, n int) {
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(at(time.Duration(n) * time.Millisecond)))
		return
	case time.Duration:
		v.SetInt(int64(n)*1_000_000_007 + 1) // a whole number of nothing but nanoseconds
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprintf("text %d é\n", n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(int64(n) + 1)
	case reflect.Uint8:
		v.SetUint(uint64(n%200) + 1)
	case reflect.Float64:
		v.SetFloat(0.1 + float64(n))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 3, 3))
		for i := range 3 {
			fillValue(v.Index(i), n+i+1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for i := range 3 {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fillValue(key, n+i+1)
			fillValue(value, n+i+4)
			v.SetMapIndex(key, value)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fillValue(v.Field(i), n+i)
		}
	default:
		panic(fmt.Sprintf("storetest: a field of kind %s: teach fill about it", v.Kind()))
	}
}
