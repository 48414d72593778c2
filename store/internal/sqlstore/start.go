package sqlstore

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/belfryhq/belfry/store"
)

// starts remember of queues below which instant of each priority nothing live stands, so that a claim need not begin at the
// beginning. That matters only where a database cannot take what is gone out of its indexes: in PostgreSQL while somebody
// holds an old transaction open, every claim would walk over all that was claimed since.
//
// A queue has a start only after a claim of it was slow. What this process writes before a start lowers it. What another
// process writes before it is found by the next claim that begins at the beginning, about a second later; for that, the start
// stays a while behind now, where new messages of other processes fall due.
type starts struct {
	active atomic.Bool // there is one
	mu     sync.Mutex
	queues map[string]*start
	always bool // every claim counts as slow
}

// ClaimsAreSlow makes every claim count as slow, so that tests see what else only a server shows that cannot clean up. It is
// called before the store is used.
func (s *Store) ClaimsAreSlow() { s.starts.always = true }

// start is that of one queue.
type start struct {
	known   bool
	lines   []line    // in the order of priorities, each with the instant to begin at
	looked  time.Time // when a claim last began at the beginning
	took    time.Duration
	looking map[*looking]struct{}
}

// looking is a claim under way, with what was written meanwhile: it may not have seen it.
type looking struct {
	full    bool // it begins at the beginning
	lines   []line
	written map[int64]int64 // by priority
	any     int64           // whatever the priority
	lost    bool            // something was written that may stand anywhere
}

// arrays are the priorities and the instants to begin at, as arguments.
func (l *looking) arrays() (priorities, since []int64) {
	priorities, since = make([]int64, len(l.lines)), make([]int64, len(l.lines))
	for i, line := range l.lines {
		priorities[i], since[i] = line.priority, line.first
	}
	return priorities, since
}

const (
	slowClaim   = 20 * time.Millisecond  // and by as much more as the following
	slowQueue   = time.Millisecond       // for each queue
	slowMessage = 100 * time.Microsecond // for each message
	lookAgain   = time.Second            // how often a claim begins at the beginning, at the least after
	lookShare   = 20                     // times as long as that took
	startSlack  = 2000                   // milliseconds that a start stays behind now
)

// begin tells a claim of a queue where to begin: nil at the beginning, with nothing to remember.
func (f *starts) begin(queue string) *looking {
	if !f.active.Load() {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	of := f.queues[queue]
	if of == nil {
		return nil
	}
	l := &looking{any: never}
	of.looking[l] = struct{}{}
	if of.known && time.Since(of.looked) < max(lookAgain, lookShare*of.took) {
		l.lines = slices.Clone(of.lines)
		return l
	}
	l.full, of.looked = true, time.Now()
	return l
}

// end takes over what a claim found: the priorities in use with their first instants. Found is nil when it failed.
func (f *starts) end(queue string, l *looking, found []line, now int64, took time.Duration, slow bool) {
	if l == nil && !slow {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	of := f.queues[queue]
	switch {
	case l == nil && of == nil:
		if f.queues == nil {
			f.queues = map[string]*start{}
		}
		f.queues[queue] = &start{looking: map[*looking]struct{}{}}
	case l != nil && of != nil:
		delete(of.looking, l)
		if found == nil {
			break
		}
		if l.full && !slow {
			delete(f.queues, queue)
			break
		}
		of.learn(l, found, now, took)
	}
	f.active.Store(len(f.queues) > 0)
}

// learn raises the start to what a claim found.
func (f *start) learn(l *looking, found []line, now int64, took time.Duration) {
	for i := range found {
		found[i].first = min(found[i].first, now-startSlack, l.any)
	}
	if l.full {
		f.known, f.lines, f.took = !l.lost, found, took
	} else {
		for _, line := range found {
			if i, ok := f.line(line.priority); ok {
				f.lines[i].first = max(f.lines[i].first, line.first)
			}
		}
	}
	for priority, at := range l.written {
		f.lower(priority, at)
	}
}

// line returns where a priority is among the lines.
func (f *start) line(priority int64) (int, bool) {
	return slices.BinarySearchFunc(f.lines, priority, func(l line, p int64) int { return cmp.Compare(l.priority, p) })
}

// lower makes claims see what stands at an instant.
func (f *start) lower(priority, at int64) {
	i, ok := f.line(priority)
	if !ok {
		f.lines = slices.Insert(f.lines, i, line{priority, at})
	}
	f.lines[i].first = min(f.lines[i].first, at)
}

// saw tells of a live message that was written.
func (f *starts) saw(queue string, priority, at int64) {
	f.each(queue, func(of *start) {
		of.lower(priority, at)
		for l := range of.looking {
			if l.written == nil {
				l.written = map[int64]int64{}
			}
			if before, ok := l.written[priority]; !ok || at < before {
				l.written[priority] = at
			}
		}
	})
}

// moved tells of a live message that has another instant now, whatever its priority, which is in use.
func (f *starts) moved(queue string, at int64) {
	f.each(queue, func(of *start) {
		for i := range of.lines {
			of.lines[i].first = min(of.lines[i].first, at)
		}
		for l := range of.looking {
			l.any = min(l.any, at)
		}
	})
}

// lost tells that something was written to a queue that may stand anywhere.
func (f *starts) lost(queue string) {
	f.each(queue, func(of *start) {
		of.known = false
		for l := range of.looking {
			l.lost = true
		}
	})
}

// each runs f on the start of the queue, if it has one.
func (f *starts) each(queue string, change func(*start)) {
	if !f.active.Load() {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if of := f.queues[queue]; of != nil {
		change(of)
	}
}

// lostAll tells that of every queue.
func (f *starts) lostAll() {
	if !f.active.Load() {
		return
	}
	f.mu.Lock()
	queues := make([]string, 0, len(f.queues))
	for queue := range f.queues {
		queues = append(queues, queue)
	}
	f.mu.Unlock()
	for _, queue := range queues {
		f.lost(queue)
	}
}

// sawAll tells of the messages of a put that were stored.
func (f *starts) sawAll(p *put) {
	if !f.active.Load() {
		return
	}
	for i, r := range p.records {
		if p.errs[i] == nil && r.live() {
			f.saw(r.queue, r.priority, r.visibleAt)
		}
	}
}

// settled tells of the messages that a batch of settlements made scheduled or changed, and of its follow-ups.
func (f *starts) settled(b *settling) {
	if !f.active.Load() {
		return
	}
	for i := range b.items {
		t := &b.items[i]
		switch {
		case b.errs[i] != nil:
			continue
		case t.content != nil:
			f.lost(t.Token.Queue)
		case !t.Outcome.State().Finished():
			f.moved(t.Token.Queue, t.at)
		}
		if t.followUps != nil {
			f.sawAll(t.followUps)
		}
	}
}

// replaced tells of the messages that changes made scheduled.
func (f *starts) replaced(b *replacing) {
	if !f.active.Load() {
		return
	}
	for i, r := range b.records {
		if r != nil && b.errs[i] == nil && r.live() {
			f.saw(r.queue, r.priority, r.dueAt)
		}
	}
}

// extended tells of leases that have another end.
func (f *starts) extended(tokens []store.Token, until time.Time) {
	if !f.active.Load() {
		return
	}
	for i := range tokens {
		f.moved(tokens[i].Queue, ceil(until))
	}
}

// claimed tells of leases that were taken.
func (f *starts) claimed(records []*record) {
	if !f.active.Load() {
		return
	}
	for _, r := range records {
		f.saw(r.queue, r.priority, r.visibleAt)
	}
}
