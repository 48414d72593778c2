package sqlstore

import "container/heap"

// entry is a message of a list: where it stands and where its row is.
type entry struct {
	place
	n    int64
	live bool
}

// stream reads the entries of one queue in the order of one index, a chunk at a time.
type stream struct {
	query  *Query
	lead   []any // the arguments before the place: the queue, and whatever else the index begins with
	filter *filter
	queue  string
	live   bool

	seen  place // entries up to this one are left out
	start place // where the next chunk begins; its first entry may have been seen
	end   int64 // no key is beyond
	chunk int64
	last  bool // the database has no more
	buf   []entry
}

// firstChunk is how many entries a stream reads at first, or its share of the page where that is more. Each next chunk is
// twice as large, up to maxChunk: of a thousand streams most give one entry to a page, or none.
const (
	firstChunk = 2
	maxChunk   = 512
)

// fill reads the next chunk if nothing is left of the one before.
func (s *stream) fill(w *work, o sorter) error {
	for len(s.buf) == 0 && !s.last {
		s.chunk = min(max(firstChunk, 2*s.chunk), maxChunk)
		rows := int64(0)
		args := append(s.lead[:len(s.lead):len(s.lead)], s.start.key, s.start.id, s.end, s.chunk)
		err := w.query(s.query, func(row Row) error {
			e := entry{place: place{queue: s.queue}, live: s.live}
			if err := row.Scan(&e.key, &e.id, &e.n); err != nil {
				return err
			}
			rows++
			if o.compare(e.place, s.seen) > 0 {
				s.seen = e.place
				s.buf = append(s.buf, e)
			}
			s.start = e.place
			return nil
		}, append(args, s.filter.args()...)...)
		if err != nil {
			return err
		}
		s.last = rows < s.chunk
	}
	return nil
}

// merge is streams as one, in the order of a list: a heap by their first entries.
type merge struct {
	order   sorter
	streams []*stream
}

// newMerge reads the beginning of every stream.
func (w *work) newMerge(o sorter, streams []*stream) (*merge, error) {
	m := &merge{order: o}
	for _, s := range streams {
		if err := s.fill(w, o); err != nil {
			return nil, err
		}
		if len(s.buf) > 0 {
			m.streams = append(m.streams, s)
		}
	}
	heap.Init(m)
	return m, nil
}

// next returns the next entry and whether there is one.
func (m *merge) next(w *work) (entry, bool, error) {
	if len(m.streams) == 0 {
		return entry{}, false, nil
	}
	s := m.streams[0]
	e := s.buf[0]
	s.buf = s.buf[1:]
	if err := s.fill(w, m.order); err != nil {
		return entry{}, false, err
	}
	if len(s.buf) == 0 {
		heap.Pop(m)
	} else {
		heap.Fix(m, 0)
	}
	return e, true, nil
}

// The methods of heap.Interface.

func (m *merge) Len() int      { return len(m.streams) }
func (m *merge) Swap(i, j int) { m.streams[i], m.streams[j] = m.streams[j], m.streams[i] }
func (m *merge) Push(s any)    { m.streams = append(m.streams, s.(*stream)) }
func (m *merge) Less(i, j int) bool {
	return m.order.compare(m.streams[i].buf[0].place, m.streams[j].buf[0].place) < 0
}

func (m *merge) Pop() any {
	last := len(m.streams) - 1
	s := m.streams[last]
	m.streams = m.streams[:last]
	return s
}
