package memstore

import (
	"bytes"
	"context"
	"strings"

	"github.com/tidwall/btree"

	"github.com/belfryhq/belfry/store"
)

// docs is the Docs of a Store, under its mutex.
type docs struct {
	s        *Store
	byName   *btree.BTreeG[store.Doc]
	revision int64 // raised by every write; a doc's version is the revision of its last one
}

func (d *docs) init(s *Store) {
	d.s = s
	d.byName = newTree(func(a, b store.Doc) bool { return a.Name < b.Name })
}

func (d *docs) clear() { d.byName.Clear() }

// Get returns a doc.
func (d *docs) Get(ctx context.Context, name string) (store.Doc, error) {
	if err := d.s.enter(ctx); err != nil {
		return store.Doc{}, err
	}
	defer d.s.mu.Unlock()
	doc, ok := d.byName.Get(store.Doc{Name: name})
	if !ok {
		return store.Doc{}, store.ErrNotFound
	}
	return cloneDoc(doc), nil
}

// Put writes a doc if its version is the stored one.
func (d *docs) Put(ctx context.Context, doc store.Doc) (int64, error) {
	if err := d.s.enter(ctx); err != nil {
		return 0, err
	}
	defer d.s.mu.Unlock()
	stored, _ := d.byName.Get(doc)
	if stored.Version != doc.Version {
		return 0, store.ErrConflict
	}
	d.revision++
	doc = cloneDoc(doc)
	doc.Version = d.revision
	d.byName.Set(doc)
	return doc.Version, nil
}

// Delete removes a doc if the version is the stored one.
func (d *docs) Delete(ctx context.Context, name string, version int64) error {
	if err := d.s.enter(ctx); err != nil {
		return err
	}
	defer d.s.mu.Unlock()
	stored, ok := d.byName.Get(store.Doc{Name: name})
	if !ok {
		return store.ErrNotFound
	}
	if stored.Version != version {
		return store.ErrConflict
	}
	d.revision++
	d.byName.Delete(stored)
	return nil
}

// List returns docs in the order of their names.
func (d *docs) List(ctx context.Context, prefix, after string, limit int) ([]store.Doc, error) {
	if err := d.s.enter(ctx); err != nil {
		return nil, err
	}
	defer d.s.mu.Unlock()
	var found []store.Doc
	d.byName.Ascend(store.Doc{Name: max(prefix, after)}, func(doc store.Doc) bool {
		if !strings.HasPrefix(doc.Name, prefix) || limit > 0 && len(found) == limit {
			return false
		}
		if doc.Name > after || after == "" {
			found = append(found, cloneDoc(doc))
		}
		return true
	})
	return found, nil
}

// Revision returns the number of the last write.
func (d *docs) Revision(ctx context.Context) (int64, error) {
	if err := d.s.enter(ctx); err != nil {
		return 0, err
	}
	defer d.s.mu.Unlock()
	return d.revision, nil
}

func cloneDoc(doc store.Doc) store.Doc {
	doc.Body = bytes.Clone(doc.Body)
	return doc
}
