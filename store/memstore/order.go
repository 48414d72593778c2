package memstore

import (
	"cmp"
	"slices"
	"strings"

	"github.com/belfryhq/belfry/store"
)

// place is where a message stands in a list.
type place struct {
	key   instant
	id    string
	queue string
	r     *record
}

// sorter is the order of a list.
type sorter struct {
	by   store.Order
	desc bool
}

func (o sorter) place(r *record) place {
	p := place{key: r.createdAt, id: r.id, queue: r.queue.name, r: r}
	switch o.by {
	case store.ByFireAt:
		p.key = r.fireAt
	case store.ByFinished:
		p.key = r.extra().finishedAt
	}
	return p
}

func (o sorter) compare(a, b place) int {
	c := cmp.Compare(a.key, b.key)
	if c == 0 {
		c = strings.Compare(a.id, b.id)
	}
	if c == 0 {
		c = strings.Compare(a.queue, b.queue)
	}
	if o.desc {
		return -c
	}
	return c
}

// maxKept is more than any list keeps; it bounds sums of what callers ask for.
const maxKept = 1 << 40

// smallest keeps the first n of the places it is given, in the memory of 2n.
type smallest struct {
	order sorter
	n     int
	kept  []place
	last  *place // the last of n places that are kept; nil until there are so many
}

func (s *smallest) add(p place) {
	if s.last != nil && s.order.compare(p, *s.last) >= 0 {
		return
	}
	s.kept = append(s.kept, p)
	if len(s.kept) == 2*s.n {
		s.cut()
	}
}

// cut drops what is not among the first n.
func (s *smallest) cut() {
	slices.SortFunc(s.kept, s.order.compare)
	if len(s.kept) >= s.n {
		s.kept = s.kept[:s.n]
		last := s.kept[s.n-1]
		s.last = &last
	}
}

// sorted returns what is kept in order.
func (s *smallest) sorted() []place {
	s.cut()
	return s.kept
}
