package redisstore

import (
	"context"
	"time"

	"github.com/belfryhq/belfry/store"
)

// putAtomic stores all messages or none. One script call does so; on a Cluster messages of several queues take two
// rounds: the first looks whether all would be stored, the second stores them queue by queue, each queue's atomically.
// Only when another writer takes an id or a dedup key between the rounds is something stored that must be taken back, and
// only until then could others see it; what they have leased meanwhile stays, and the caller gets an error.
func (s *Store) putAtomic(ctx context.Context, now time.Time, messages []store.Message, mode store.PutMode) ([]store.PutResult, error) {
	p := putting{s: s, now: nowOf(now), results: make([]store.PutResult, len(messages))}
	flags := int(mode) & (modeOverwrite | modeAtomic)
	calls := p.whole(messages, flags)
	if len(calls) > 1 {
		if err := p.run(ctx, p.whole(messages, flags|modeLook)); err != nil {
			return nil, err
		}
		if p.refused() {
			p.abort()
			return p.results, nil
		}
	}
	if err := p.run(ctx, calls); err != nil {
		return nil, err
	}
	if len(calls) > 1 && p.refused() {
		if err := p.takeBack(ctx, now, messages); err != nil {
			return nil, err
		}
		p.abort()
	}
	return p.results, nil
}

// whole returns one call for each group of queues, however much it takes.
func (p *putting) whole(messages []store.Message, mode int) []*putCall {
	var calls []*putCall
	open := make(map[string]*putCall, 1)
	for i := range messages {
		m := &messages[i]
		group := p.s.group(m.Queue)
		if open[group] == nil {
			open[group] = p.call(mode)
			calls = append(calls, open[group])
		}
		open[group].add(p.s.keys, i, m, p.now.millis)
	}
	return calls
}

// refused reports whether a message of the batch was refused.
func (p *putting) refused() bool {
	for i := range p.results {
		if p.results[i].Err != nil {
			return true
		}
	}
	return false
}

// abort makes the results those of a batch that was not stored.
func (p *putting) abort() {
	for i := range p.results {
		if p.results[i].Err == nil {
			p.results[i] = store.PutResult{Err: store.ErrAborted}
		}
	}
}

// takeBack removes what was stored of a batch, if it is still as it was stored. What an overwritten message was is lost.
func (p *putting) takeBack(ctx context.Context, now time.Time, messages []store.Message) error {
	var changes []store.Change
	for i := range messages {
		if p.results[i].Err != nil {
			continue
		}
		gone := messages[i]
		gone.State, gone.PurgeAt, gone.Parent, gone.DedupKey, gone.Version = store.Canceled, time.Time{}, "", "", p.results[i].Version
		changes = append(changes, store.Change{Message: gone})
	}
	errs, err := p.s.replace(ctx, now, changes)
	for _, one := range errs {
		if one != nil {
			err = one
		}
	}
	return err
}
