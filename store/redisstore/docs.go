package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/belfryhq/belfry/store"
)

// docs is the Docs of a Store. All docs have one hash tag, so that one script changes a doc and the revision. The version
// of a doc is the revision of its last write.
type docs struct{ s *Store }

// Get returns a doc.
func (d *docs) Get(ctx context.Context, name string) (store.Doc, error) {
	if err := d.s.enter(ctx); err != nil {
		return store.Doc{}, err
	}
	defer d.s.exit()
	records, _, _ := d.s.keys.docs()
	c := &call{args: []any{"hget", records, name}}
	if err := d.s.run(ctx, c); err != nil {
		return store.Doc{}, fmt.Errorf("get the doc %q: %w", name, err)
	}
	record, found := c.reply.(string)
	if !found {
		return store.Doc{}, store.ErrNotFound
	}
	return readDoc(name, record)
}

// readDoc reads a record: the version and the body.
func readDoc(name, record string) (store.Doc, error) {
	r := reader{text: record}
	doc := store.Doc{Name: name, Version: r.double(), Body: []byte(r.rest())}
	if r.failed {
		return store.Doc{}, fmt.Errorf("the record of the doc %q is broken", name)
	}
	return doc, nil
}

// Put writes a doc if its version is the stored one.
func (d *docs) Put(ctx context.Context, doc store.Doc) (int64, error) {
	body := doc.Body
	if body == nil {
		body = []byte{}
	}
	return d.write(ctx, doc.Name, doc.Version, body)
}

// Delete removes a doc if the version is the stored one.
func (d *docs) Delete(ctx context.Context, name string, version int64) error {
	_, err := d.write(ctx, name, version)
	return err
}

// write writes a doc, or removes it where there is no body.
func (d *docs) write(ctx context.Context, name string, version int64, body ...any) (int64, error) {
	if err := d.s.enter(ctx); err != nil {
		return 0, err
	}
	defer d.s.exit()
	records, names, revision := d.s.keys.docs()
	c := &call{script: d.s.scripts.docPut, keys: []string{records, names, revision}, args: append([]any{name, version}, body...), write: true}
	if err := d.s.run(ctx, c); err != nil {
		return 0, fmt.Errorf("write the doc %q: %w", name, err)
	}
	switch n := asInt(c.reply); n {
	case -1:
		return 0, store.ErrNotFound
	case 0:
		return 0, store.ErrConflict
	default:
		return n, nil
	}
}

// List returns docs in the order of their names.
func (d *docs) List(ctx context.Context, prefix, after string, limit int) ([]store.Doc, error) {
	if err := d.s.enter(ctx); err != nil {
		return nil, err
	}
	defer d.s.exit()
	if limit <= 0 {
		limit = -1
	}
	records, names, _ := d.s.keys.docs()
	low, high := lexRange(prefix, after)
	c := &call{script: d.s.scripts.docList, keys: []string{records, names}, args: []any{low, high, limit}}
	if err := d.s.run(ctx, c); err != nil {
		return nil, fmt.Errorf("list the docs of %q: %w", prefix, err)
	}
	var found []store.Doc
	list := c.list()
	for i := 0; i+1 < len(list); i += 2 {
		doc, err := readDoc(asText(list[i]), asText(list[i+1]))
		if err != nil {
			return nil, err
		}
		found = append(found, doc)
	}
	return found, nil
}

// Revision returns the number of the last write.
func (d *docs) Revision(ctx context.Context) (int64, error) {
	if err := d.s.enter(ctx); err != nil {
		return 0, err
	}
	defer d.s.exit()
	_, _, revision := d.s.keys.docs()
	c := &call{args: []any{"get", revision}}
	if err := d.s.run(ctx, c); err != nil {
		return 0, fmt.Errorf("read the revision of the docs: %w", err)
	}
	text, found := c.reply.(string)
	if !found {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, errors.Join(err)
}
