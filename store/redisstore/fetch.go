package redisstore

import (
	"context"

	"github.com/belfryhq/belfry/store"
)

// How many messages one call fetches.
const (
	fetchHeads    = 200 // without payloads
	fetchPayloads = 20
)

// fetching is a call of fetch.lua and which places it is for.
type fetching struct {
	call
	at []int
}

// fetch reads the messages at places. Those that are no longer there are left out.
func (s *Store) fetch(ctx context.Context, places []place, payloads bool, o sorter, f *filter) ([]store.Message, error) {
	calls := s.fetchCalls(places, payloads)
	plain := make([]*call, len(calls))
	for i, c := range calls {
		plain[i] = &c.call
	}
	if err := s.run(ctx, plain...); err != nil {
		return nil, err
	}
	all, there := make([]store.Message, len(places)), make([]bool, len(places))
	for _, c := range calls {
		for j, i := range c.at {
			m, err := c.message(j, places[i])
			if err != nil {
				return nil, err
			}
			if m != nil {
				all[i], there[i] = *m, f.admits(m) && o.place(m) == places[i]
			}
			if !payloads {
				all[i].Payload = nil
			}
		}
	}
	messages := make([]store.Message, 0, len(places))
	for i := range all {
		if there[i] {
			messages = append(messages, all[i])
		}
	}
	return messages, nil
}

// fetchCalls returns the calls that read the messages at places.
func (s *Store) fetchCalls(places []place, payloads bool) []*fetching {
	size := fetchHeads
	if payloads {
		size = fetchPayloads
	}
	var calls []*fetching
	open := make(map[string]*fetching)
	for i, p := range places {
		c := open[p.queue]
		if c == nil || len(c.at) == size {
			var t targets
			t.number(s.keys, p.queue)
			c = &fetching{call: call{script: s.scripts.fetch, keys: t.keys, args: []any{btoi(payloads)}}}
			open[p.queue], calls = c, append(calls, c)
		}
		c.at, c.args = append(c.at, i), append(c.args, p.id)
	}
	return calls
}

// message reads one message of the answer; nil: it is gone.
func (c *fetching) message(j int, p place) (*store.Message, error) {
	answer := c.list()
	if 2*j+1 >= len(answer) || asText(answer[2*j]) == "" {
		return nil, nil
	}
	m := store.Message{Queue: p.queue, ID: p.id}
	_, err := readMessage(asText(answer[2*j]), asText(answer[2*j+1]), &m)
	return &m, err
}
