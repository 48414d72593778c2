package memstore

import (
	"maps"
	"slices"

	"github.com/belfryhq/belfry/store"
)

// maxShapes is how many recent shapes a queue remembers in order to share them.
const maxShapes = 4

// shapeOf returns the message's shape, one that is already shared if the queue has seen it lately.
func (q *queue) shapeOf(m *store.Message) *shape {
	for _, s := range q.shapes {
		if s != nil && s.fits(m) {
			return s
		}
	}
	s := &shape{
		kind: m.Kind, target: m.Target, contentType: m.ContentType, params: maps.Clone(m.Params),
		timeout: m.Timeout, retry: m.Retry, retention: m.Retention,
	}
	s.retry.Delays = slices.Clone(m.Retry.Delays)
	q.shapes[q.nextShape] = s
	q.nextShape = (q.nextShape + 1) % maxShapes
	return s
}

func (s *shape) fits(m *store.Message) bool {
	return s.kind == m.Kind && s.target == m.Target && s.contentType == m.ContentType &&
		s.timeout == m.Timeout && s.retention == m.Retention && sameRetry(&s.retry, &m.Retry) &&
		(s.params == nil) == (m.Params == nil) && maps.Equal(s.params, m.Params)
}

func sameRetry(a, b *store.Retry) bool {
	return a.MaxAttempts == b.MaxAttempts && a.MaxClaims == b.MaxClaims && a.MaxAge == b.MaxAge &&
		a.Backoff == b.Backoff && a.Base == b.Base && a.Max == b.Max && a.Factor == b.Factor &&
		a.Jitter == b.Jitter && a.RetryAfterMax == b.RetryAfterMax &&
		(a.Delays == nil) == (b.Delays == nil) && slices.Equal(a.Delays, b.Delays)
}
