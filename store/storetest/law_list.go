package storetest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/belfryhq/belfry/store"
)

func listLaws() []Law {
	return []Law{
		{"list/filters", "List and Count select what meets every condition of the query", listFilters},
		{"list/orders", "a list is in its order, both ways, ties by id", listOrders},
		{"list/pages", "pages by offset and by cursor are the parts of one list", listPages},
		{"list/churn", "paging by cursor neither repeats nor skips what does not change meanwhile", listChurn},
		{"list/cursor", "a cursor that no list has given is refused", listCursor},
		{"queues/window", "Queues names the queues with something visible within the window, with the earliest such instant", queuesWindow},
		{"queues/pages", "Queues is read by prefix, and in parts from a name on", queuesPages},
	}
}

func listFilters(e *env) {
	q, other := e.name(), e.name()
	for i := range 12 {
		m := e.message(q, fmt.Sprintf("m%02d", i), at(time.Duration(i)*time.Minute))
		m.Kind, m.Group, m.Parent = fmt.Sprint("k", i%2), fmt.Sprint("g", i%3), fmt.Sprint("p", i%4)
		e.put(start, m)
	}
	e.put(start, e.message(other, "m00", start))
	held := e.claimKeys(at(time.Hour), store.Key{Queue: q, ID: "m11"})
	e.settle(at(time.Hour), store.Settlement{Token: held[0].Token(), Outcome: store.OutcomeBury, PurgeAt: store.Never})
	e.claimKeys(at(time.Hour), store.Key{Queue: q, ID: "m10"})
	for _, c := range []struct {
		query store.Query
		want  string
	}{
		{store.Query{Kind: "k1"}, "m01 m03 m05 m07 m09 m11"},
		{store.Query{Group: "g0"}, "m00 m03 m06 m09"},
		{store.Query{Parent: "p3"}, "m03 m07 m11"},
		{store.Query{Kind: "k0", Group: "g1"}, "m04 m10"},
		{store.Query{States: []store.State{store.Leased}}, "m10"},
		{store.Query{States: []store.State{store.Dead, store.Leased}}, "m10 m11"},
		{store.Query{FireMin: at(3 * time.Minute), FireMax: at(5 * time.Minute)}, "m03 m04 m05"},
		{store.Query{FireMax: at(5 * time.Minute), Kind: "k0"}, "m00 m02 m04"},
		{store.Query{Order: store.ByFinished}, "m11"},
	} {
		c.query.Queue = q
		e.step("%+v", c.query)
		var want []string
		for i := 0; i+3 <= len(c.want); i += 4 {
			want = append(want, c.want[i:i+3])
		}
		e.ids(e.list(c.query).Messages, want...)
		if c.query.Order != store.ByFinished {
			equal(e, "Count", e.total(c.query), len(want))
		}
	}
}

func listOrders(e *env) {
	q := e.name()
	// created: a b b c; fire: c a a b, ids break the ties.
	for i, m := range []struct {
		id            string
		created, fire time.Duration
	}{{"4", 1, 9}, {"3", 2, 5}, {"2", 2, 5}, {"1", 3, 1}} {
		_ = i
		one := e.message(q, m.id, at(m.fire*time.Minute))
		one.CreatedAt = at(m.created * time.Minute)
		e.put(start, one)
	}
	for _, c := range []struct {
		order store.Order
		want  []string
	}{{store.ByCreated, []string{"4", "2", "3", "1"}}, {store.ByFireAt, []string{"1", "2", "3", "4"}}} {
		e.step("order %d", c.order)
		e.ids(e.list(store.Query{Queue: q, Order: c.order}).Messages, c.want...)
		slices.Reverse(c.want)
		e.ids(e.list(store.Query{Queue: q, Order: c.order, Desc: true}).Messages, c.want...)
	}
}

func listPages(e *env) {
	q := e.name()
	e.put(start, e.messages(q, 25, at(time.Hour))...)
	all := e.list(store.Query{Queue: q, Limit: 100})
	if all.Next != "" {
		e.fail("the last page has a cursor")
	}
	for offset := 0; offset < 25; offset += 10 {
		part := e.list(store.Query{Queue: q, Limit: 10, Offset: offset})
		e.ids(part.Messages, idsOf(all.Messages[offset:min(offset+10, 25)])...)
	}
	query, read := store.Query{Queue: q, Limit: 7}, []string(nil)
	for range 10 {
		page := e.list(query)
		read = append(read, idsOf(page.Messages)...)
		if query.Cursor = page.Next; query.Cursor == "" {
			break
		}
	}
	if !slices.Equal(read, idsOf(all.Messages)) {
		e.fail("the pages by cursor are %s", brief(read))
	}
}

func idsOf(ms []store.Message) []string {
	ids := make([]string, len(ms))
	for i := range ms {
		ids[i] = ms[i].ID
	}
	return ids
}

func listChurn(e *env) {
	for _, order := range []store.Order{store.ByCreated, store.ByFireAt} {
		q := e.name()
		e.step("order %d", order)
		for i := range 30 {
			m := e.message(q, fmt.Sprintf("keep%02d", i), at(time.Duration(2*i)*time.Minute))
			m.CreatedAt = m.FireAt
			e.put(start, m)
		}
		query, read := store.Query{Queue: q, Limit: 4, Order: order}, map[string]int{}
		for n := range 40 {
			page := e.list(query)
			for _, m := range page.Messages {
				read[m.ID]++
			}
			if query.Cursor = page.Next; query.Cursor == "" {
				break
			}
			m := e.message(q, fmt.Sprintf("new%02d", n), at(time.Duration(2*n+1)*time.Minute))
			m.CreatedAt = m.FireAt
			e.put(start, m)
		}
		for i := range 30 {
			if n := read[fmt.Sprintf("keep%02d", i)]; n != 1 {
				e.fail("message keep%02d was read %d times", i, n)
			}
		}
	}
}

func listCursor(e *env) {
	for _, cursor := range []string{"x", "!!", "AAAA"} {
		if _, err := e.s.List(e.Context(), store.Query{Queue: e.name(), Cursor: cursor}); !errors.Is(err, store.ErrBadCursor) {
			e.fail("the cursor %q: %v", cursor, err)
		}
	}
}

func queuesWindow(e *env) {
	e.fresh()
	for i, minute := range []int{1, 5, 9} {
		q := fmt.Sprint("q", i)
		e.put(start, e.message(q, "first", at(time.Duration(minute)*time.Minute)), e.message(q, "late", at(time.Hour)))
	}
	gated := e.message("q3", "gated", start)
	gated.Gate = &store.Gate{IDs: []string{"member"}}
	e.put(start, e.message("q3", "member", at(2*time.Hour)), gated)
	for _, c := range []struct {
		min, max time.Duration
		want     string
	}{
		{0, 10, "[q0@1 q1@5 q2@9]"}, {1, 5, "[q0@1 q1@5]"}, {2, 8, "[q1@5]"}, {6, 60, "[q0@60 q1@60 q2@9]"}, {10, 20, "[]"}, {90, 130, "[q3@120]"},
	} {
		hints, err := e.s.Queues(e.Context(), store.Window{Min: at(c.min * time.Minute), Max: at(c.max * time.Minute)})
		if err != nil {
			e.fail("Queues: %v", err)
		}
		got := []string{}
		for _, h := range hints {
			got = append(got, fmt.Sprintf("%s@%d", h.Queue, int(h.At.Sub(start).Minutes())))
		}
		if fmt.Sprint(got) != c.want {
			e.fail("the window of the minutes %d to %d: %v, want %s", c.min, c.max, got, c.want)
		}
	}
}

func queuesPages(e *env) {
	e.fresh()
	for _, q := range []string{"a", "b/1", "b/2", "b/3", "c"} {
		e.put(start, e.message(q, "m", at(time.Minute)))
	}
	for _, c := range []struct {
		window store.Window
		want   string
	}{
		{store.Window{}, "[a b/1 b/2 b/3 c]"}, {store.Window{Prefix: "b/"}, "[b/1 b/2 b/3]"}, {store.Window{Prefix: "b/", After: "b/1"}, "[b/2 b/3]"},
		{store.Window{After: "b/2", Limit: 1}, "[b/3]"}, {store.Window{Limit: 2}, "[a b/1]"}, {store.Window{Prefix: "x"}, "[]"},
	} {
		hints, err := e.s.Queues(e.Context(), c.window)
		if err != nil {
			e.fail("Queues: %v", err)
		}
		got := []string{}
		for _, h := range hints {
			got = append(got, h.Queue)
		}
		if fmt.Sprint(got) != c.want {
			e.fail("%+v: %v, want %s", c.window, got, c.want)
		}
	}
}
