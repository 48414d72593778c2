package redisstore

import (
	"cmp"
	"encoding/base64"
	"encoding/json"

	"github.com/belfryhq/belfry/store"
)

// place is where a message stands in a list.
type place struct {
	key   int64
	id    string
	queue string
}

// sorter is the order of a list.
type sorter struct {
	by   store.Order
	desc bool
}

func (o sorter) compare(a, b place) int {
	c := cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.id, b.id), cmp.Compare(a.queue, b.queue))
	if o.desc {
		return -c
	}
	return c
}

// place returns where a message stands.
func (o sorter) place(m *store.Message) place {
	p := place{key: millis(m.CreatedAt), id: m.ID, queue: m.Queue}
	switch o.by {
	case store.ByFireAt:
		p.key = millis(m.FireAt)
	case store.ByFinished:
		p.key = millis(m.FinishedAt)
	}
	return p
}

// index is the letter of the order's index.
func (o sorter) index() string {
	switch o.by {
	case store.ByFireAt:
		return "f"
	case store.ByFinished:
		return "e"
	default:
		return "c"
	}
}

// cursor is the last place of a page and the order it belongs to.
type cursor struct {
	Order store.Order `json:"o"`
	Desc  bool        `json:"d,omitempty"`
	Key   int64       `json:"k"`
	ID    []byte      `json:"i"`
	Queue []byte      `json:"q"`
}

func (o sorter) cursor(p place) string {
	text, err := json.Marshal(cursor{o.by, o.desc, p.key, []byte(p.id), []byte(p.queue)})
	if err != nil {
		panic("redisstore: a cursor is always valid JSON: " + err.Error())
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// parse returns the place that a cursor names.
func (o sorter) parse(text string) (place, error) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return place{}, store.ErrBadCursor
	}
	var c cursor
	if json.Unmarshal(raw, &c) != nil || c.Order != o.by || c.Desc != o.desc {
		return place{}, store.ErrBadCursor
	}
	return place{key: c.Key, id: string(c.ID), queue: string(c.Queue)}, nil
}
