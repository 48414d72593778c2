package telemetry

import (
	"context"
	"time"

	"github.com/belfryhq/belfry/store"
)

// measuredDocs are docs whose calls are measured.
type measuredDocs struct {
	inner store.Docs
	calls *calls
}

// Get measures the call.
func (d *measuredDocs) Get(ctx context.Context, name string) (store.Doc, error) {
	start := time.Now()
	doc, err := d.inner.Get(ctx, name)
	d.calls.byOp[opDocsGet].done(ctx, start, err)
	return doc, err
}

// Put measures the call.
func (d *measuredDocs) Put(ctx context.Context, doc store.Doc) (int64, error) {
	start := time.Now()
	version, err := d.inner.Put(ctx, doc)
	d.calls.byOp[opDocsPut].done(ctx, start, err)
	return version, err
}

// Delete measures the call.
func (d *measuredDocs) Delete(ctx context.Context, name string, version int64) error {
	start := time.Now()
	err := d.inner.Delete(ctx, name, version)
	d.calls.byOp[opDocsDelete].done(ctx, start, err)
	return err
}

// List measures the call.
func (d *measuredDocs) List(ctx context.Context, prefix, after string, limit int) ([]store.Doc, error) {
	start := time.Now()
	docs, err := d.inner.List(ctx, prefix, after, limit)
	d.calls.byOp[opDocsList].done(ctx, start, err)
	return docs, err
}

// Revision measures the call.
func (d *measuredDocs) Revision(ctx context.Context) (int64, error) {
	start := time.Now()
	revision, err := d.inner.Revision(ctx)
	d.calls.byOp[opDocsRevision].done(ctx, start, err)
	return revision, err
}
