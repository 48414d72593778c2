package memstore

import (
	"encoding/base64"
	"encoding/json"

	"github.com/belfryhq/belfry/store"
)

// cursor is the last place of a page and the order it belongs to.
type cursor struct {
	Order store.Order `json:"o"`
	Desc  bool        `json:"d,omitempty"`
	Key   instant     `json:"k"`
	ID    []byte      `json:"i"`
	Queue []byte      `json:"q"`
}

// cursor returns the cursor of the page that follows the place.
func (p place) cursor(query *store.Query) string {
	text, err := json.Marshal(cursor{query.Order, query.Desc, p.key, []byte(p.id), []byte(p.queue)})
	if err != nil {
		panic("memstore: a cursor is always valid JSON: " + err.Error())
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// parseCursor returns the place that a cursor names; without one it is not used.
func parseCursor(text string, query *store.Query) (place, error) {
	if text == "" {
		return place{}, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return place{}, store.ErrBadCursor
	}
	var c cursor
	if json.Unmarshal(raw, &c) != nil || c.Order != query.Order || c.Desc != query.Desc {
		return place{}, store.ErrBadCursor
	}
	return place{key: c.Key, id: string(c.ID), queue: string(c.Queue)}, nil
}
