package redisstore

import (
	"errors"
	"fmt"

	"github.com/belfryhq/belfry/store"
)

// The reasons that scripts give; the same as in lib.lua.
const (
	codeOK = iota
	codeExists
	codeDuplicate
	codeInFlight
	codeAborted
	codeLost
	codeMissing
	codeConflict
)

// codes are the errors of the reasons.
var codes = [...]error{
	codeExists: store.ErrExists, codeDuplicate: store.ErrDuplicate, codeInFlight: store.ErrInFlight, codeAborted: store.ErrAborted,
	codeLost: store.ErrLeaseLost, codeMissing: store.ErrNotFound, codeConflict: store.ErrConflict,
}

// codeError returns the error of a reason; nil for codeOK.
func codeError(code int64) error {
	if code < 0 || code >= int64(len(codes)) {
		return fmt.Errorf("a script gave the unknown answer %d", code)
	}
	return codes[code]
}

// errPutAnswer: a script's answer has not the form that it should.
var errPutAnswer = errors.New("script put gave an answer of another form")

// read reads the answer of a call.
func (p *putting) read(c *putCall) error {
	answer := c.list()
	if len(answer) < 2 || len(asList(answer[0]))%2 != 1 {
		return errPutAnswer
	}
	results := asList(answer[0])
	common := p.common(results[len(results)-1])
	for _, i := range c.at {
		p.results[i] = common
	}
	for j := 0; j+1 < len(results); j += 2 {
		n := asInt(results[j])
		if n < 0 || n >= int64(len(c.at)) {
			return errPutAnswer
		}
		version, stored := results[j+1].(int64)
		if stored {
			p.results[c.at[n]] = store.PutResult{Version: version}
			continue
		}
		result, err := refusal(asList(results[j+1]), c.names[c.queues[n]-1])
		if err != nil {
			return err
		}
		p.results[c.at[n]] = result
	}
	p.opened = append(p.opened, openedGates(answer[1], c.names)...)
	for _, n := range asList(answer[len(answer)-1]) {
		if len(answer) == 3 {
			p.long = append(p.long, c.names[asInt(n)-1])
		}
	}
	return nil
}

// common returns the result of all messages of a call that have none of their own: a version, or that they were aborted.
func (p *putting) common(answer any) store.PutResult {
	if version, stored := answer.(int64); stored {
		return store.PutResult{Version: version}
	}
	return store.PutResult{Err: store.ErrAborted}
}

// refusal reads why a message was refused.
func refusal(answer []any, queue string) (store.PutResult, error) {
	if len(answer) == 0 {
		return store.PutResult{}, errors.New("script put gave an empty answer")
	}
	result := store.PutResult{Err: codeError(asInt(answer[0]))}
	if len(answer) < 4 {
		return result, nil
	}
	m := store.Message{Queue: queue, ID: asText(answer[1])}
	known, err := readMessage(asText(answer[2]), asText(answer[3]), &m)
	if err != nil {
		return result, err
	}
	if m.Payload = nil; !known {
		m = store.Message{Queue: queue, ID: m.ID, State: store.Done}
	}
	result.Existing = &m
	return result, nil
}

// openedGates reads which gates a script has opened.
func openedGates(answer any, queues []string) []store.QueueHint {
	var hints []store.QueueHint
	list := asList(answer)
	for i := 0; i+1 < len(list); i += 2 {
		hints = append(hints, store.QueueHint{Queue: queues[asInt(list[i])-1], At: instant(asInt(list[i+1]))})
	}
	return hints
}
