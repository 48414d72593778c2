package storetest

import (
	"fmt"
	"sync"
	"time"

	"github.com/belfryhq/belfry/store"
)

func keepingLaws() []Law {
	return []Law{
		{"docs/swap", "a doc is written only at its version, which never repeats for a name", docsSwap},
		{"docs/list", "docs are listed by prefix, in the order of names, in parts", docsList},
		{"docs/revision", "every write of a doc changes the revision that claims return", docsRevision},
		{"purge/bounded", "Purge removes what has had its time, oldest first, at most as many as it is told", purgeBounded},
		{"purge/never", "Purge leaves what is live, what has time left, and what is kept for ever", purgeNever},
	}
}

func docsSwap(e *env) {
	docs, name := e.s.Docs(), e.name()
	put := func(version int64, body string) (int64, error) {
		return docs.Put(e.Context(), store.Doc{Name: name, Version: version, Body: []byte(body)})
	}
	_, err := docs.Get(e.Context(), name)
	e.is(err, store.ErrNotFound, "Get of a missing doc")
	first, err := put(0, "a")
	e.is(err, nil, "Put of a new doc")
	_, err = put(0, "b")
	e.is(err, store.ErrConflict, "Put as new of a doc that exists")
	second, err := put(first, "b")
	e.is(err, nil, "Put at the version")
	_, err = put(first, "c")
	e.is(err, store.ErrConflict, "Put at an old version")
	doc, err := docs.Get(e.Context(), name)
	if err != nil || string(doc.Body) != "b" || doc.Version != second || second <= first {
		e.fail("Get gave %q at version %d, %v", doc.Body, doc.Version, err)
	}
	e.is(docs.Delete(e.Context(), name, first), store.ErrConflict, "Delete at an old version")
	e.is(docs.Delete(e.Context(), name, second), nil, "Delete")
	e.is(docs.Delete(e.Context(), name, second), store.ErrNotFound, "Delete of a missing doc")
	again, err := put(0, "d")
	e.is(err, nil, "Put of a deleted doc")
	if again <= second {
		e.fail("the version %d repeats: it was %d before the doc was deleted", again, second)
	}
	var mu sync.Mutex
	var wait sync.WaitGroup
	won := 0
	for range 16 {
		wait.Go(func() {
			if _, err := docs.Put(e.Context(), store.Doc{Name: name, Version: again}); err == nil {
				mu.Lock()
				won++
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	equal(e, "writers that won at one version", won, 1)
}

func docsList(e *env) {
	docs, prefix := e.s.Docs(), e.name()+"/"
	for _, n := range []string{"c", "a", "b"} {
		if _, err := docs.Put(e.Context(), store.Doc{Name: prefix + n, Body: []byte{0, 255}}); err != nil {
			e.fail("Put: %v", err)
		}
	}
	for _, c := range []struct {
		after string
		limit int
		want  string
	}{{"", 0, "abc"}, {"", 2, "ab"}, {prefix + "a", 0, "bc"}, {prefix + "c", 0, ""}} {
		all, err := docs.List(e.Context(), prefix, c.after, c.limit)
		if err != nil {
			e.fail("List: %v", err)
		}
		got := ""
		for _, d := range all {
			got += d.Name[len(prefix):]
		}
		equal(e, fmt.Sprintf("docs after %q, at most %d", c.after, c.limit), got, c.want)
	}
}

func docsRevision(e *env) {
	e.fresh()
	revision := func() int64 {
		return e.claimAs(store.Claim{Now: start, Queues: []store.QueueClaim{{Queue: "q", Limit: 1}}}).Revision
	}
	before := revision()
	version, err := e.s.Docs().Put(e.Context(), store.Doc{Name: "d"})
	e.is(err, nil, "Put")
	written := revision()
	if written == before {
		e.fail("a write left the revision at %d", before)
	}
	e.is(e.s.Docs().Delete(e.Context(), "d", version), nil, "Delete")
	deleted := revision()
	if deleted == written {
		e.fail("a deletion left the revision at %d", written)
	}
	if told, err := e.s.Docs().Revision(e.Context()); err != nil || told != deleted {
		e.fail("Revision is %d, %v; a claim says %d", told, err, deleted)
	}
}

// ended puts a finished message that is kept until an instant.
func (e *env) ended(q, id string, purge time.Time) {
	m := e.message(q, id, start)
	m.State, m.FinishedAt, m.PurgeAt = store.Done, start, purge
	e.put(start, m)
}

func purgeBounded(e *env) {
	e.fresh()
	q := e.name()
	for i := range 7 {
		e.ended(q, fmt.Sprint(6-i), at(time.Duration(6-i)*time.Minute))
	}
	purge := func(want int, left ...string) {
		e.Helper()
		n, err := e.s.Purge(e.Context(), at(5*time.Minute), 4)
		if err != nil || n != want {
			e.fail("Purge removed %d, %v; want %d", n, err, want)
		}
		e.ids(e.list(store.Query{Queue: q, Order: store.ByFireAt}).Messages, left...)
	}
	purge(4, "4", "5", "6")
	purge(2, "6")
	purge(0, "6")
}

func purgeNever(e *env) {
	e.fresh()
	q := e.name()
	e.ended(q, "later", at(time.Hour))
	e.ended(q, "never", store.Never)
	e.put(start, e.message(q, "live", start))
	if n, err := e.s.Purge(e.Context(), at(time.Minute), 100); err != nil || n != 0 {
		e.fail("Purge removed %d, %v", n, err)
	}
	equal(e, "messages left", e.total(store.Query{Queue: q}), 3)
}
