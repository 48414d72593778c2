package v1

import (
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/belfryhq/belfry"
)

// Page is a part of a list.
type Page struct {
	Messages []Message `json:"messages"`
	Total    int64     `json:"total"`
	Next     string    `json:"next,omitempty"`
}

// list shows messages: queue, prefix, state, kind, group, order, desc, limit, offset, cursor, payloads.
func (a *api) list(w http.ResponseWriter, r *http.Request) error {
	q, err := query(r)
	if err != nil {
		return err
	}
	page, err := a.client.List(r.Context(), q)
	if err != nil {
		return err
	}
	out := Page{Messages: make([]Message, len(page.Messages)), Next: page.Next}
	for i := range page.Messages {
		out.Messages[i] = view(&page.Messages[i])
	}
	if out.Total, err = a.client.Count(r.Context(), q); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, out)
}

// maxPage is how many messages a page has at most.
const maxPage = 1000

// maxPayloads is how many it has at most with their payloads, which are held in memory until the reply is written.
const maxPayloads = 100

func query(r *http.Request) (belfry.Query, error) {
	q := belfry.Query{Limit: 100}
	err := parameters(r, func(name, value string) error { return setParameter(&q, name, value) })
	if err == nil && q.Payloads && q.Limit > maxPayloads {
		err = bad("limit %d is too many with payloads: at most %d", q.Limit, maxPayloads)
	}
	return q, err
}

// parameters calls set with each parameter of the query, and refuses what cannot be read and what is given twice.
func parameters(r *http.Request, set func(name, value string) error) error {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return bad("the query cannot be read: write name=value, separated by &, with special characters percent-encoded")
	}
	for name, given := range values {
		if len(given) > 1 {
			return bad("parameter %.64q is given %d times: give it once", name, len(given))
		}
		if err := set(name, given[0]); err != nil {
			return err
		}
	}
	return nil
}

func flag(name, value string) (bool, error) {
	if value != "true" && value != "false" {
		return false, bad("%s %.64q must be true or false", name, value)
	}
	return value == "true", nil
}

func setParameter(q *belfry.Query, name, value string) (err error) {
	switch name {
	case "queue":
		q.Queue = value
	case "prefix":
		q.Prefix = value
	case "kind":
		q.Kind = value
	case "group":
		q.Group = value
	case "cursor":
		q.Cursor = value
	case "payloads":
		q.Payloads, err = flag(name, value)
	case "desc":
		q.Desc, err = flag(name, value)
	case "state":
		for one := range strings.SplitSeq(value, ",") {
			state, err := belfry.ParseState(one)
			if err != nil {
				return bad("%v", err)
			}
			q.States = append(q.States, state)
		}
	case "order":
		order, ok := map[string]belfry.Order{"created": belfry.ByCreated, "fire_at": belfry.ByFireAt, "finished": belfry.ByFinished}[value]
		if !ok {
			return bad("order %.64q is none of created, fire_at, finished", value)
		}
		q.Order = order
	case "limit":
		q.Limit, err = number(name, value, 1, maxPage)
	case "offset":
		q.Offset, err = number(name, value, 0, math.MaxInt32)
	default:
		return bad("parameter %.64q is unknown", name)
	}
	return err
}

func number(name, value string, least, most int) (int, error) {
	n, err := strconv.Atoi(value)
	if err != nil || n < least || n > most {
		return 0, bad("%s %.64q must be a number from %d to %d", name, value, least, most)
	}
	return n, nil
}
