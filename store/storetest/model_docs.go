package storetest

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"github.com/belfryhq/belfry/store"
)

// modelDoc is a write to a doc. Its version is the one the name had some writes ago, or none.
type modelDoc struct {
	name   string
	body   []byte
	back   int // how many versions ago; beyond the first: none
	delete bool
}

func (op *modelDoc) play(r *modelRun) {
	docs, seen := r.s.Docs(), r.m.docVersions[op.name]
	var version int64
	if op.back < len(seen) {
		version = seen[len(seen)-1-op.back]
	}
	stored, exists := r.m.docs[op.name]
	if op.delete {
		want := store.ErrConflict
		if !exists {
			want = store.ErrNotFound
		} else if stored.Version == version {
			want = nil
			delete(r.m.docs, op.name)
		}
		r.sameError("Delete of the doc "+op.name, docs.Delete(r.t.Context(), op.name, version), want)
		r.revised(want == nil)
		return
	}
	got, err := docs.Put(r.t.Context(), store.Doc{Name: op.name, Version: version, Body: bytes.Clone(op.body)})
	if stored.Version != version {
		r.sameError("Put of the doc "+op.name, err, store.ErrConflict)
		r.revised(false)
		return
	}
	r.sameError("Put of the doc "+op.name, err, nil)
	if len(seen) > 0 && got <= slices.Max(seen) || got <= 0 {
		r.fail("Put of the doc %s gave the version %d after %d", op.name, got, seen)
	}
	r.m.docs[op.name] = store.Doc{Name: op.name, Version: got, Body: op.body}
	r.m.docVersions[op.name] = append(seen, got)
	r.revised(true)
}

// revised fails unless the revision changed exactly if something was written.
func (r *modelRun) revised(wrote bool) {
	got, err := r.s.Docs().Revision(r.t.Context())
	if err != nil || wrote != (got != r.m.revision) {
		r.fail("the revision is %d after %d, written: %t (%v)", got, r.m.revision, wrote, err)
	}
	r.m.revision = got
}

// modelDocs is a Get of every doc and a List.
type modelDocs struct {
	prefix, after string
	limit         int
}

func (op *modelDocs) play(r *modelRun) {
	docs := r.s.Docs()
	for _, name := range modelDocNames {
		got, err := docs.Get(r.t.Context(), name)
		want, exists := r.m.docs[name]
		if !exists {
			r.sameError("Get of the doc "+name, err, store.ErrNotFound)
			continue
		}
		r.sameError("Get of the doc "+name, err, nil)
		if !modelSameDoc(got, want) {
			r.fail("the doc is %+v, want %+v", got, want)
		}
	}
	var want []store.Doc
	for _, name := range slices.Sorted(maps.Keys(r.m.docs)) {
		if strings.HasPrefix(name, op.prefix) && name > op.after && (op.limit == 0 || len(want) < op.limit) {
			want = append(want, r.m.docs[name])
		}
	}
	got, err := docs.List(r.t.Context(), op.prefix, op.after, op.limit)
	if err != nil || !slices.EqualFunc(got, want, modelSameDoc) {
		r.fail("the docs are %+v (%v), want %+v", got, err, want)
	}
}

func modelSameDoc(a, b store.Doc) bool {
	return a.Name == b.Name && a.Version == b.Version && bytes.Equal(a.Body, b.Body)
}
