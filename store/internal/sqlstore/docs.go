package sqlstore

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/belfryhq/belfry/store"
)

// Docs returns the records that are not messages.
func (s *Store) Docs() store.Docs { return docs{s} }

// docs is the Docs of a Store. A doc's version is the revision of its last write.
type docs struct{ s *Store }

// Get returns a doc.
func (d docs) Get(ctx context.Context, name string) (store.Doc, error) {
	doc := store.Doc{Name: name}
	err := d.s.read(ctx, "get doc", func(w *work) error {
		found, err := w.first(w.q.docGet, []any{&doc.Version, &doc.Body}, name)
		if err == nil && !found {
			return store.ErrNotFound
		}
		return err
	})
	if err != nil {
		return store.Doc{}, err
	}
	return doc, nil
}

// Put writes a doc if its version is the stored one.
func (d docs) Put(ctx context.Context, doc store.Doc) (int64, error) {
	var version int64
	err := d.change(ctx, "put doc", doc.Name, len(doc.Body), func(w *work, stored, revision int64) (refused, err error) {
		if stored != doc.Version {
			return store.ErrConflict, nil
		}
		version = revision
		_, err = w.exec(w.q.docPut, doc.Name, revision, doc.Body)
		return nil, err
	})
	if err != nil {
		return 0, err
	}
	return version, nil
}

// Delete removes a doc if the version is the stored one.
func (d docs) Delete(ctx context.Context, name string, version int64) error {
	return d.change(ctx, "delete doc", name, 0, func(w *work, stored, _ int64) (refused, err error) {
		switch stored {
		case 0:
			return store.ErrNotFound, nil
		case version:
			_, err = w.exec(w.q.docDelete, name)
			return nil, err
		default:
			return store.ErrConflict, nil
		}
	})
}

// change runs f with the stored version of a doc, zero where there is none, and the revision that the write has. A
// refused change raises no revision.
func (d docs) change(ctx context.Context, what, name string, bytes int, f func(w *work, stored, revision int64) (refused, err error)) error {
	var refused error
	err := d.s.write(ctx, what, time.Time{}, Load{Rows: 1, Bytes: bytes}, func(w *work) error {
		var stored, revision int64
		var body []byte
		read := w.q.revision
		if w.q.lockRevision != nil { // one writer at a time
			read = w.q.lockRevision
		}
		if _, err := w.first(read, []any{&revision}); err != nil {
			return err
		}
		if _, err := w.first(w.q.docGet, []any{&stored, &body}, name); err != nil {
			return err
		}
		var err error
		if refused, err = f(w, stored, revision+1); err != nil || refused != nil {
			return err
		}
		_, err = w.exec(w.q.raiseRevision)
		return err
	})
	if err != nil {
		return err
	}
	if refused != nil {
		return fmt.Errorf("%s %q: %w", what, name, refused)
	}
	return nil
}

// List returns docs in the order of their names.
func (d docs) List(ctx context.Context, prefix, after string, limit int) ([]store.Doc, error) {
	if limit <= 0 {
		limit = math.MaxInt32
	}
	var found []store.Doc
	err := d.s.read(ctx, "list docs", func(w *work) error {
		found = nil
		return w.query(w.q.docList, func(row Row) error {
			var doc store.Doc
			if err := row.Scan(&doc.Name, &doc.Version, &doc.Body); err != nil {
				return err
			}
			if !strings.HasPrefix(doc.Name, prefix) || len(found) == limit {
				return errStop
			}
			if after == "" || doc.Name > after {
				found = append(found, doc)
			}
			return nil
		}, max(prefix, after), int64(limit)+1)
	})
	return found, err
}

// Revision returns the number of the last write.
func (d docs) Revision(ctx context.Context) (int64, error) {
	var revision int64
	err := d.s.read(ctx, "read revision", func(w *work) error {
		_, err := w.first(w.q.revision, []any{&revision})
		return err
	})
	return revision, err
}
