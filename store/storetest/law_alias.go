package storetest

import (
	"reflect"
	"time"

	"github.com/belfryhq/belfry/store"
)

// scribble changes everything that a value shares with its copies: bytes, elements of slices and maps.
func scribble(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			scribble(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				scribble(v.Field(i))
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			scribble(v.Index(i))
			v.Index(i).SetZero()
		}
	case reflect.Map:
		v.Clear()
	}
}

func scribbleOn[T any](v *T) { scribble(reflect.ValueOf(v).Elem()) }

func fieldsGiven(e *env) {
	q := e.name()
	e.step("Put")
	ms := []store.Message{full(q, "a", store.Scheduled, 1), full(q, "b", store.Done, 2)}
	e.put(start, ms...)
	scribbleOn(&ms)
	e.same(e.get(store.Key{Queue: q, ID: "a"}), full(q, "a", store.Scheduled, 1), owned...)
	e.same(e.get(store.Key{Queue: q, ID: "b"}), full(q, "b", store.Done, 2), owned...)

	e.step("Settle")
	held := only(e, e.claim(at(time.Hour), q, 1))
	content, follow := full(q, "a", store.Scheduled, 3), full(q, "f", store.Scheduled, 4)
	ss := []store.Settlement{{
		Token: held.Token(), Outcome: store.OutcomeRetry, At: at(time.Hour), Content: &content,
		Attempt: &store.Attempt{Number: 9, Response: []byte("answer")}, FollowUps: []store.Message{follow},
	}}
	e.settle(at(time.Hour), ss...)
	scribbleOn(&ss)
	got := e.get(held.Key())
	e.same(got, full(q, "a", store.Scheduled, 3), append(settledFields, "CreatedAt", "History")...)
	equal(e, "the response in History", string(got.History[len(got.History)-1].Response), "answer")
	e.same(e.get(follow.Key()), full(q, "f", store.Scheduled, 4), owned...)

	e.step("Replace")
	m := full(q, "a", store.Scheduled, 5)
	m.Version = got.Version
	e.replace(at(time.Hour), m)
	scribbleOn(&m)
	e.same(e.get(held.Key()), full(q, "a", store.Scheduled, 5), append(owned, "CreatedAt", "History")...)
}

func fieldsReturned(e *env) {
	q := e.name()
	m := full(q, "a", store.Scheduled, 1)
	e.put(start, m, full(q, "b", store.Done, 2))
	unchanged := func(what string) {
		e.Helper()
		e.step("%s", what)
		e.same(e.get(m.Key()), full(q, "a", store.Scheduled, 1), append(owned, "State", "Claims")...)
		e.same(e.get(store.Key{Queue: q, ID: "b"}), full(q, "b", store.Done, 2), owned...)
	}
	for _, id := range []string{"a", "b"} {
		got := e.get(store.Key{Queue: q, ID: id})
		scribbleOn(&got)
	}
	unchanged("Get")
	page := e.list(store.Query{Queue: q, Payloads: true})
	scribbleOn(&page)
	unchanged("List")
	res := e.tryPut(start, 0, m)
	scribbleOn(&res)
	unchanged("Put of what exists")
	got := e.claim(at(time.Hour), q, 1)
	scribbleOn(&got)
	unchanged("Claim")
}
