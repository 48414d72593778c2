package timers

import (
	"net/http"
	"net/url"
	"strconv"

	"github.com/belfryhq/belfry"
)

const (
	defaultLimit = 50
	maxLimit     = 200
)

// list shows a page of timers and how many there are.
func (a *api) list(w http.ResponseWriter, r *http.Request) {
	q, err := query(r.URL.RawQuery)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	page, err := a.client.List(r.Context(), q)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	total, err := a.client.Count(r.Context(), q)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	timers := make([]summary, len(page.Messages))
	for i := range page.Messages {
		timers[i] = summarize(&page.Messages[i])
	}
	reply(w, http.StatusOK, codeOK, "success", map[string]any{
		"timers": timers, "total": total, "limit": q.Limit, "offset": q.Offset,
	})
}

// query reads the parameters of a list.
func query(text string) (q belfry.Query, err error) {
	q = belfry.Query{Queue: Queue, Limit: defaultLimit, Desc: true}
	values, err := url.ParseQuery(text)
	if err != nil { // what could be read of it would list something else than was asked for
		return q, bad("the query cannot be read: write name=value, separated by &, with special characters percent-encoded")
	}
	for name, given := range values {
		if len(given) > 1 {
			return q, bad("parameter %.64q is given %d times: give it once", name, len(given))
		}
		if err := setParameter(&q, name, given[0]); err != nil {
			return q, err
		}
	}
	return q, nil
}

func setParameter(q *belfry.Query, name, value string) (err error) {
	switch name {
	case "status":
		for state, status := range statuses {
			if status == value {
				q.States = []belfry.State{state}
				return nil
			}
		}
		return bad("status %.64q is none of pending, executing, completed, failed, canceled", value)
	case "limit":
		q.Limit, err = number(name, value, 1, maxLimit)
	case "offset":
		q.Offset, err = number(name, value, 0, 1<<31-1)
	case "sort":
		return choose(name, value, map[string]func(){
			"created_at": func() { q.Order = belfry.ByCreated },
			"execute_at": func() { q.Order = belfry.ByFireAt },
		}, "created_at or execute_at")
	case "order":
		return choose(name, value, map[string]func(){
			"asc":  func() { q.Desc = false },
			"desc": func() { q.Desc = true },
		}, "asc or desc")
	default:
		return bad("parameter %.64q is unknown: use status, limit, offset, sort, order", name)
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

func choose(name, value string, choices map[string]func(), remedy string) error {
	choice, ok := choices[value]
	if !ok {
		return bad("%s %.64q must be %s", name, value, remedy)
	}
	choice()
	return nil
}
