package storetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belfryhq/belfry/store"
	"github.com/belfryhq/belfry/store/memstore"
)

// mutant is a correct store with one small bug: a method that is not nil replaces the store's.
type mutant struct {
	store.Store
	put     func(s store.Store, ctx context.Context, now time.Time, ms []store.Message, mode store.PutMode) ([]store.PutResult, error)
	claim   func(s store.Store, ctx context.Context, c store.Claim) (store.Claimed, error)
	settle  func(s store.Store, ctx context.Context, now time.Time, ss []store.Settlement) ([]error, error)
	extend  func(s store.Store, ctx context.Context, now time.Time, ts []store.Token, until time.Time) ([]store.Held, error)
	replace func(s store.Store, ctx context.Context, now time.Time, cs []store.Change) ([]error, error)
	forfeit func(s store.Store, ctx context.Context, now time.Time, owner string, epoch int64) (int, error)
	get     func(s store.Store, ctx context.Context, key store.Key) (store.Message, error)
	list    func(s store.Store, ctx context.Context, q store.Query) (store.Page, error)
	purge   func(s store.Store, ctx context.Context, now time.Time, limit int) (int, error)
	queues  func(s store.Store, ctx context.Context, w store.Window) ([]store.QueueHint, error)
	docs    func(d store.Docs) store.Docs
	close   func(s store.Store) error
	waker   bool // wake-ups are lost
}

func (m *mutant) Queues(ctx context.Context, w store.Window) ([]store.QueueHint, error) {
	if m.queues == nil {
		return m.Store.Queues(ctx, w)
	}
	return m.queues(m.Store, ctx, w)
}

func (m *mutant) Docs() store.Docs {
	if m.docs == nil {
		return m.Store.Docs()
	}
	return m.docs(m.Store.Docs())
}

func (m *mutant) Close() error {
	if m.close == nil {
		return m.Store.Close()
	}
	return m.close(m.Store)
}

// Wake tells nobody where the bug is that.
func (m *mutant) Wake(ctx context.Context, hints []store.QueueHint) error {
	if m.waker {
		return nil
	}
	return m.Store.(store.Waker).Wake(ctx, hints)
}

func (m *mutant) Listen(ctx context.Context, ready func(), heard func([]store.QueueHint)) error {
	return m.Store.(store.Waker).Listen(ctx, ready, heard)
}

func (m *mutant) Put(ctx context.Context, now time.Time, ms []store.Message, mode store.PutMode) ([]store.PutResult, error) {
	if m.put == nil {
		return m.Store.Put(ctx, now, ms, mode)
	}
	return m.put(m.Store, ctx, now, ms, mode)
}

func (m *mutant) Claim(ctx context.Context, c store.Claim) (store.Claimed, error) {
	if m.claim == nil {
		return m.Store.Claim(ctx, c)
	}
	return m.claim(m.Store, ctx, c)
}

func (m *mutant) Settle(ctx context.Context, now time.Time, ss []store.Settlement) ([]error, error) {
	if m.settle == nil {
		return m.Store.Settle(ctx, now, ss)
	}
	return m.settle(m.Store, ctx, now, ss)
}

func (m *mutant) Extend(ctx context.Context, now time.Time, ts []store.Token, until time.Time) ([]store.Held, error) {
	if m.extend == nil {
		return m.Store.Extend(ctx, now, ts, until)
	}
	return m.extend(m.Store, ctx, now, ts, until)
}

func (m *mutant) Replace(ctx context.Context, now time.Time, cs []store.Change) ([]error, error) {
	if m.replace == nil {
		return m.Store.Replace(ctx, now, cs)
	}
	return m.replace(m.Store, ctx, now, cs)
}

func (m *mutant) Forfeit(ctx context.Context, now time.Time, owner string, epoch int64) (int, error) {
	if m.forfeit == nil {
		return m.Store.Forfeit(ctx, now, owner, epoch)
	}
	return m.forfeit(m.Store, ctx, now, owner, epoch)
}

func (m *mutant) Get(ctx context.Context, key store.Key) (store.Message, error) {
	if m.get == nil {
		return m.Store.Get(ctx, key)
	}
	return m.get(m.Store, ctx, key)
}

func (m *mutant) List(ctx context.Context, q store.Query) (store.Page, error) {
	if m.list == nil {
		return m.Store.List(ctx, q)
	}
	return m.list(m.Store, ctx, q)
}

func (m *mutant) Purge(ctx context.Context, now time.Time, limit int) (int, error) {
	if m.purge == nil {
		return m.Store.Purge(ctx, now, limit)
	}
	return m.purge(m.Store, ctx, now, limit)
}

// The makers of bugs: each turns a small change of what goes in or comes out into a mutant.

// putting changes messages, or the mode, before they are put.
func putting(change func(m *store.Message), mode func(store.PutMode) store.PutMode) func() *mutant {
	return func() *mutant {
		return &mutant{put: func(s store.Store, ctx context.Context, now time.Time, ms []store.Message, md store.PutMode) ([]store.PutResult, error) {
			ms = slices.Clone(ms)
			for i := range ms {
				if change != nil {
					change(&ms[i])
				}
			}
			if mode != nil {
				md = mode(md)
			}
			return s.Put(ctx, now, ms, md)
		}}
	}
}

// stored changes the results of Put.
func stored(change func(r *store.PutResult)) func() *mutant {
	return func() *mutant {
		return &mutant{put: func(s store.Store, ctx context.Context, now time.Time, ms []store.Message, mode store.PutMode) ([]store.PutResult, error) {
			results, err := s.Put(ctx, now, ms, mode)
			for i := range results {
				change(&results[i])
			}
			return results, err
		}}
	}
}

// claiming changes a claim.
func claiming(change func(c *store.Claim)) func() *mutant {
	return func() *mutant {
		return &mutant{claim: func(s store.Store, ctx context.Context, c store.Claim) (store.Claimed, error) {
			c.Queues = slices.Clone(c.Queues)
			change(&c)
			return s.Claim(ctx, c)
		}}
	}
}

// claimed changes what a claim got.
func claimed(change func(c *store.Claimed)) func() *mutant {
	return func() *mutant {
		return &mutant{claim: func(s store.Store, ctx context.Context, c store.Claim) (store.Claimed, error) {
			got, err := s.Claim(ctx, c)
			change(&got)
			return got, err
		}}
	}
}

// settling changes settlements before they are applied.
func settling(change func(s store.Store, ctx context.Context, now time.Time, st *store.Settlement)) func() *mutant {
	return func() *mutant {
		return &mutant{settle: func(s store.Store, ctx context.Context, now time.Time, ss []store.Settlement) ([]error, error) {
			ss = slices.Clone(ss)
			for i := range ss {
				change(s, ctx, now, &ss[i])
			}
			return s.Settle(ctx, now, ss)
		}}
	}
}

// settledWith changes the results of Settle.
func settledWith(change func(errs []error)) func() *mutant {
	return func() *mutant {
		return &mutant{settle: func(s store.Store, ctx context.Context, now time.Time, ss []store.Settlement) ([]error, error) {
			errs, err := s.Settle(ctx, now, ss)
			change(errs)
			return errs, err
		}}
	}
}

// replacing changes changes before they are made.
func replacing(change func(s store.Store, ctx context.Context, c *store.Change)) func() *mutant {
	return func() *mutant {
		return &mutant{replace: func(s store.Store, ctx context.Context, now time.Time, cs []store.Change) ([]error, error) {
			cs = slices.Clone(cs)
			for i := range cs {
				change(s, ctx, &cs[i])
			}
			return s.Replace(ctx, now, cs)
		}}
	}
}

// replaced changes the results of Replace.
func replaced(change func(errs []error)) func() *mutant {
	return func() *mutant {
		return &mutant{replace: func(s store.Store, ctx context.Context, now time.Time, cs []store.Change) ([]error, error) {
			errs, err := s.Replace(ctx, now, cs)
			change(errs)
			return errs, err
		}}
	}
}

// extended changes the answers of Extend.
func extended(change func(h *store.Held)) func() *mutant {
	return func() *mutant {
		return &mutant{extend: func(s store.Store, ctx context.Context, now time.Time, ts []store.Token, until time.Time) ([]store.Held, error) {
			held, err := s.Extend(ctx, now, ts, until)
			for i := range held {
				change(&held[i])
			}
			return held, err
		}}
	}
}

// got changes what Get returns.
func got(change func(m *store.Message, err *error)) func() *mutant {
	return func() *mutant {
		return &mutant{get: func(s store.Store, ctx context.Context, key store.Key) (store.Message, error) {
			m, err := s.Get(ctx, key)
			change(&m, &err)
			return m, err
		}}
	}
}

// Bugs that several laws catch.
var (
	ignoresChanges = func() *mutant {
		return &mutant{replace: func(_ store.Store, _ context.Context, _ time.Time, cs []store.Change) ([]error, error) {
			return make([]error, len(cs)), nil
		}}
	}
	unfencedSettle = settling(func(s store.Store, ctx context.Context, _ time.Time, st *store.Settlement) {
		if m, err := s.Get(ctx, store.Key{Queue: st.Token.Queue, ID: st.Token.ID}); err == nil {
			st.Token.Version = m.Version
		}
	})
	unfencedReplace = replacing(func(s store.Store, ctx context.Context, c *store.Change) {
		if m, err := s.Get(ctx, c.Message.Key()); err == nil {
			c.Message.Version = m.Version
		}
	})
	overridesLeases = replacing(func(_ store.Store, _ context.Context, c *store.Change) {
		if c.Mode == store.Swap {
			c.Mode = store.Revoke
		}
	})
	aheadIsDue = claiming(func(c *store.Claim) { c.Now, c.Ahead = c.Now.Add(c.Ahead), 0 })
	reverses   = claimed(func(c *store.Claimed) { slices.Reverse(c.Messages) })
	firstError = func(errs []error) {
		for i := range errs {
			errs[i] = errs[0]
		}
	}
	noContent = settling(func(_ store.Store, _ context.Context, _ time.Time, st *store.Settlement) { st.Content = nil })
	overwrite = func(m store.PutMode) store.PutMode { return m | store.Overwrite }
)

// sharesMemory returns the first payload it ever saw of a message again and again, as a store does that copies nothing.
func sharesMemory() *mutant {
	var mu sync.Mutex
	kept := map[store.Key][]byte{}
	return &mutant{
		put: func(s store.Store, ctx context.Context, now time.Time, ms []store.Message, mode store.PutMode) ([]store.PutResult, error) {
			mu.Lock()
			defer mu.Unlock()
			for _, m := range ms {
				kept[m.Key()] = m.Payload
			}
			return s.Put(ctx, now, ms, mode)
		},
		get: func(s store.Store, ctx context.Context, key store.Key) (store.Message, error) {
			mu.Lock()
			defer mu.Unlock()
			m, err := s.Get(ctx, key)
			if p, ok := kept[key]; ok && err == nil {
				m.Payload = p
			}
			return m, err
		},
	}
}

// remembersTime never lets its clock go back.
func remembersTime() *mutant {
	var mu sync.Mutex
	var latest time.Time
	return &mutant{claim: func(s store.Store, ctx context.Context, c store.Claim) (store.Claimed, error) {
		mu.Lock()
		latest = store.Later(latest, c.Now)
		c.Now = latest
		mu.Unlock()
		return s.Claim(ctx, c)
	}}
}

// handsOutTwice gives each claimer what the one before it got, too.
func handsOutTwice() *mutant {
	var mu sync.Mutex
	var last []store.Message
	return &mutant{claim: func(s store.Store, ctx context.Context, c store.Claim) (store.Claimed, error) {
		got, err := s.Claim(ctx, c)
		mu.Lock()
		defer mu.Unlock()
		mine := got.Messages
		got.Messages = append(slices.Clone(mine), last...)
		last = mine
		return got, err
	}}
}

// mutants has, for each law, a bug that the law must catch.
var mutants = map[string]func() *mutant{
	"fields/put":   got(func(m *store.Message, _ *error) { m.Kind = "" }),
	"fields/views": func() *mutant { return &mutant{list: listing(func(q *store.Query) { q.Payloads = true })} },
	"fields/bytes": putting(func(m *store.Message) {
		if len(m.Payload) == 0 {
			m.Payload = nil
		}
	}, nil),
	"fields/text": putting(func(m *store.Message) {
		m.Kind, m.Address, m.Group, m.LastError = lower(m.Kind), lower(m.Address), lower(m.Group), lower(m.LastError)
	}, nil),
	"fields/names":    putting(func(m *store.Message) { m.ID = lower(m.ID) }, nil),
	"fields/instants": putting(func(m *store.Message) { m.FireAt = m.FireAt.Truncate(time.Second) }, nil),
	"fields/numbers":  putting(func(m *store.Message) { m.Priority = int32(int16(m.Priority)) }, nil),
	"fields/given":    sharesMemory,
	"fields/returned": sharesMemory,

	"put/assigns":         putting(func(m *store.Message) { m.CreatedAt = time.Time{} }, nil),
	"put/finished":        putting(func(m *store.Message) { m.History = nil }, nil),
	"put/id-taken":        putting(nil, overwrite),
	"put/dedup-taken":     putting(func(m *store.Message) { m.DedupKey = "" }, nil),
	"put/dedup-free":      putting(func(m *store.Message) { m.DedupUntil = store.Never }, nil),
	"put/dedup-until":     putting(func(m *store.Message) { m.DedupUntil = time.Time{} }, nil),
	"put/race":            putting(nil, overwrite),
	"put/overwrite":       putting(nil, func(m store.PutMode) store.PutMode { return m &^ store.Overwrite }),
	"put/overwrite-dedup": putting(func(m *store.Message) { m.DedupKey = "" }, nil),
	"put/overwrite-leased": stored(func(r *store.PutResult) {
		if errors.Is(r.Err, store.ErrInFlight) {
			r.Err = nil
		}
	}),
	"put/atomic":  putting(nil, func(m store.PutMode) store.PutMode { return m &^ store.Atomic }),
	"put/version": stored(func(r *store.PutResult) { r.Version = 1 }),

	"claim/lease":  claimed(func(c *store.Claimed) { forget(c, func(m *store.Message) { m.Owner = "" }) }),
	"claim/early":  claiming(func(c *store.Claim) { c.Now = c.Now.Add(time.Millisecond) }),
	"claim/limits": claiming(func(c *store.Claim) { raise(c.Queues) }),
	"claim/queues": claimed(func(c *store.Claimed) { c.Messages = c.Messages[:min(len(c.Messages), 50)] }),
	"claim/ahead":  claiming(func(c *store.Claim) { c.Ahead = 0 }),

	"claim/due-first":    aheadIsDue,
	"claim/ahead-leased": aheadIsDue,
	"claim/keys":         claiming(func(c *store.Claim) { c.Keys = nil }),
	"claim/keys-skipped": claiming(func(c *store.Claim) { c.Now = c.Now.Add(time.Hour) }),
	"claim/next": claimed(func(c *store.Claimed) {
		for i := range c.Queues {
			c.Queues[i].Next = c.Queues[i].Next.Add(time.Second)
		}
	}),
	"claim/exclusive":  handsOutTwice,
	"claim/run-out":    claimed(func(c *store.Claimed) { forget(c, func(m *store.Message) { m.Claims = 1 }) }),
	"claim/clock-back": remembersTime,

	"order/exact":      reverses,
	"order/priorities": reverses,
	"order/kept":       reverses,

	"lease/stale": unfencedSettle,
	"lease/twice": settledWith(func(errs []error) { clear(errs) }),
	"lease/run-out": func() *mutant {
		return &mutant{settle: func(s store.Store, ctx context.Context, now time.Time, ss []store.Settlement) ([]error, error) {
			for _, st := range ss {
				m, err := s.Get(ctx, store.Key{Queue: st.Token.Queue, ID: st.Token.ID})
				if err == nil && !m.VisibleAt.After(now) {
					return slices.Repeat([]error{store.ErrLeaseLost}, len(ss)), nil
				}
			}
			return s.Settle(ctx, now, ss)
		}}
	},
	"extend/held": func() *mutant {
		return &mutant{extend: func(s store.Store, ctx context.Context, now time.Time, ts []store.Token, _ time.Time) ([]store.Held, error) {
			return s.Extend(ctx, now, ts, time.Time{})
		}}
	},
	"extend/lost": extended(func(h *store.Held) {
		if *h == store.Lost {
			*h = store.Extended
		}
	}),
	"stop/mark": extended(func(h *store.Held) {
		if *h == store.Stopping {
			*h = store.Extended
		}
	}),
	"stop/refused": replaced(func(errs []error) { clear(errs) }),
	"stop/revoke": replacing(func(_ store.Store, _ context.Context, c *store.Change) {
		if c.Mode == store.Revoke {
			c.Mode = store.Swap
		}
	}),
	"forfeit/earlier": forfeiting(func(epoch int64) int64 { return epoch + 100 }),
	"forfeit/back":    forfeiting(func(int64) int64 { return -100 }),

	"settle/retry":   outcome(store.OutcomeRetry, store.OutcomeRelease),
	"settle/release": outcome(store.OutcomeRelease, store.OutcomeRetry),
	"settle/kept": settling(func(_ store.Store, _ context.Context, now time.Time, st *store.Settlement) {
		st.PurgeAt = now
	}),
	"settle/removed": settling(func(_ store.Store, _ context.Context, _ time.Time, st *store.Settlement) {
		st.PurgeAt = store.Never
	}),
	"settle/attempt": settling(func(_ store.Store, _ context.Context, _ time.Time, st *store.Settlement) { st.Attempt = nil }),
	"settle/history": got(func(m *store.Message, _ *error) { slices.Reverse(m.History) }),
	"settle/error":   settling(func(_ store.Store, _ context.Context, _ time.Time, st *store.Settlement) { st.Error = "" }),
	"settle/content": noContent, "settle/content-dedup": noContent,
	"settle/each": settledWith(firstError),

	"followup/put": followUps(func(_ store.Store, _ context.Context, _ time.Time, st *store.Settlement) { st.FollowUps = nil }),
	"followup/gate": followUps(func(_ store.Store, _ context.Context, _ time.Time, st *store.Settlement) {
		for i := range st.FollowUps {
			st.FollowUps[i].Gate = nil
		}
	}),
	"followup/taken": followUps(func(s store.Store, ctx context.Context, now time.Time, st *store.Settlement) {
		_, _ = s.Put(ctx, now, st.FollowUps, store.Overwrite)
	}),
	"followup/stale": followUps(func(s store.Store, ctx context.Context, now time.Time, st *store.Settlement) {
		_, _ = s.Put(ctx, now, st.FollowUps, 0)
	}),
	"followup/trace": followUps(func(_ store.Store, _ context.Context, _ time.Time, st *store.Settlement) {
		for i := range st.FollowUps {
			st.FollowUps[i].Parent = ""
		}
	}),
	"followup/trace-hidden": got(func(m *store.Message, err *error) {
		if errors.Is(*err, store.ErrNotFound) {
			*m, *err = store.Message{State: store.Done}, nil
		}
	}),
	"followup/trace-purged": func() *mutant {
		return &mutant{purge: func(store.Store, context.Context, time.Time, int) (int, error) { return 0, nil }}
	},

	"replace/fields":    replacing(func(_ store.Store, _ context.Context, c *store.Change) { c.Message.Kind = "" }),
	"replace/conflict":  unfencedReplace,
	"replace/missing":   replaced(func(errs []error) { clear(errs) }),
	"replace/in-flight": overridesLeases,
	"replace/cancel-race": replacing(func(s store.Store, ctx context.Context, c *store.Change) {
		if m, err := s.Get(ctx, c.Message.Key()); err == nil {
			c.Message.Version, c.Mode = m.Version, store.Revoke
		}
	}),
	"replace/revive": ignoresChanges, "replace/cancel": ignoresChanges,
	"replace/dedup": replacing(func(_ store.Store, _ context.Context, c *store.Change) { c.Message.DedupKey = "" }),
	"replace/each":  replaced(firstError),
	"replace/race":  unfencedReplace,
}

// moreMutants are those of the laws about stores as a whole.
var moreMutants = map[string]func() *mutant{
	"list/filters":  func() *mutant { return &mutant{list: listing(func(q *store.Query) { q.Kind, q.Group = "", "" })} },
	"list/orders":   func() *mutant { return &mutant{list: listing(func(q *store.Query) { q.Desc = false })} },
	"list/pages":    func() *mutant { return &mutant{list: listing(func(q *store.Query) { q.Offset, q.Cursor = 0, "" })} },
	"list/churn":    func() *mutant { return &mutant{list: listing(func(q *store.Query) { q.Cursor = "" })} },
	"list/cursor":   func() *mutant { return &mutant{list: listing(func(q *store.Query) { q.Cursor = "" })} },
	"queues/window": windows(func(w *store.Window) { w.Max = time.Time{} }),
	"queues/pages":  windows(func(w *store.Window) { w.After = "" }),
	"gate/members":  putting(func(m *store.Message) { m.Gate = nil }, nil),
	"gate/open":     putting(func(m *store.Message) { m.DueAt = start.Add(1000 * time.Hour) }, nil),
	"gate/retry":    outcome(store.OutcomeRetry, store.OutcomeBury),
	"gate/race":     putting(func(m *store.Message) { m.Gate = nil }, nil),
	"gate/wake":     putting(func(m *store.Message) { m.Gate = nil }, nil),
	"limit/concurrency": claiming(func(c *store.Claim) {
		for i := range c.Queues {
			c.Queues[i].Concurrency = 0
		}
	}),
	"limit/rate": claiming(func(c *store.Claim) {
		for i := range c.Queues {
			c.Queues[i].Rate = store.Rate{}
		}
	}),
	"stop/ask": extended(func(h *store.Held) { *h = store.Lost }),
	"docs/swap": func() *mutant {
		return &mutant{docs: func(d store.Docs) store.Docs { return unguardedDocs{d} }}
	},
	"docs/list": func() *mutant {
		return &mutant{docs: func(d store.Docs) store.Docs { return unfilteredDocs{d} }}
	},
	"docs/revision": claimed(func(c *store.Claimed) { c.Revision = 1 }),
	"purge/bounded": func() *mutant {
		return &mutant{purge: func(s store.Store, ctx context.Context, now time.Time, _ int) (int, error) {
			return s.Purge(ctx, now, 1<<30)
		}}
	},
	"purge/never": func() *mutant {
		return &mutant{purge: func(s store.Store, ctx context.Context, _ time.Time, limit int) (int, error) {
			return s.Purge(ctx, store.Never, limit)
		}}
	},
	"many/batches": claimed(func(c *store.Claimed) { c.Messages = c.Messages[:min(len(c.Messages), 100)] }),
	"many/canceled": func() *mutant {
		return &mutant{put: func(s store.Store, _ context.Context, now time.Time, ms []store.Message, mode store.PutMode) ([]store.PutResult, error) {
			return s.Put(context.Background(), now, ms, mode)
		}}
	},
	"wake/heard":   func() *mutant { return &mutant{waker: true} },
	"close/reopen": func() *mutant { return &mutant{} },
	"close/end":    func() *mutant { return &mutant{close: func(store.Store) error { return nil }} },
}

func windows(change func(w *store.Window)) func() *mutant {
	return func() *mutant {
		return &mutant{queues: func(s store.Store, ctx context.Context, w store.Window) ([]store.QueueHint, error) {
			change(&w)
			return s.Queues(ctx, w)
		}}
	}
}

// unguardedDocs writes whatever the version.
type unguardedDocs struct{ store.Docs }

func (d unguardedDocs) Put(ctx context.Context, doc store.Doc) (int64, error) {
	if old, err := d.Docs.Get(ctx, doc.Name); err == nil {
		doc.Version = old.Version
	}
	return d.Docs.Put(ctx, doc)
}

// unfilteredDocs lists from the beginning.
type unfilteredDocs struct{ store.Docs }

func (d unfilteredDocs) List(ctx context.Context, prefix, _ string, limit int) ([]store.Doc, error) {
	return d.Docs.List(ctx, prefix, "", limit)
}

func lower(s string) string { return strings.TrimRight(strings.ToLower(s), " ") }

func raise(queues []store.QueueClaim) {
	for i := range queues {
		queues[i].Limit++
	}
}

func forget(c *store.Claimed, change func(m *store.Message)) {
	for i := range c.Messages {
		change(&c.Messages[i])
	}
}

func listing(change func(q *store.Query)) func(store.Store, context.Context, store.Query) (store.Page, error) {
	return func(s store.Store, ctx context.Context, q store.Query) (store.Page, error) {
		change(&q)
		return s.List(ctx, q)
	}
}

func forfeiting(change func(epoch int64) int64) func() *mutant {
	return func() *mutant {
		return &mutant{forfeit: func(s store.Store, ctx context.Context, now time.Time, owner string, epoch int64) (int, error) {
			return s.Forfeit(ctx, now, owner, change(epoch))
		}}
	}
}

func outcome(from, to store.Outcome) func() *mutant {
	return settling(func(_ store.Store, _ context.Context, _ time.Time, st *store.Settlement) {
		if st.Outcome == from {
			st.Outcome = to
		}
	})
}

// followUps changes settlements with follow-ups of their own.
func followUps(change func(s store.Store, ctx context.Context, now time.Time, st *store.Settlement)) func() *mutant {
	return settling(func(s store.Store, ctx context.Context, now time.Time, st *store.Settlement) {
		st.FollowUps = slices.Clone(st.FollowUps)
		change(s, ctx, now, st)
	})
}

// recorder notes that a law failed.
type recorder struct {
	ctx    context.Context
	failed string
}

func (r *recorder) Helper() {}

func (r *recorder) Fatalf(format string, args ...any) {
	r.failed = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Skipf(string, ...any) { runtime.Goexit() }

func (r *recorder) Context() context.Context { return r.ctx }

// hangs is how long a law may take on a broken store: one that waits for ever has noticed, too.
const hangs = 20 * time.Second

// verdict runs a law on stores that open returns and tells how it failed; empty: it held.
func verdict(t *testing.T, law Law, open Opener) string {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r := &recorder{ctx: ctx}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				r.failed = fmt.Sprint("panic: ", p)
			}
		}()
		law.check(newEnv(r, t, law, open(t), open, Options{Scale: Small, Reopen: func(_ testing.TB, s store.Store) store.Store {
			if _, broken := s.(*mutant); broken {
				return memstore.New() // forgets everything
			}
			return s
		}}))
	}()
	select {
	case <-done:
		return r.failed
	case <-time.After(hangs):
		return "the law does not end"
	}
}

func allMutants() map[string]func() *mutant {
	all := maps.Clone(mutants)
	maps.Copy(all, moreMutants)
	return all
}

func TestEachLawFailsUnderItsMutant(t *testing.T) {
	for _, law := range Laws() {
		t.Run(law.Name, func(t *testing.T) {
			t.Parallel()
			broken, ok := mutants[law.Name]
			if !ok {
				broken, ok = moreMutants[law.Name]
			}
			if !ok {
				t.Fatal("the law has no mutant: add a store with a bug that it must catch")
			}
			open := func(testing.TB) store.Store { return memstore.New() }
			if failed := verdict(t, law, open); failed != "" {
				t.Fatalf("the law fails on a correct store: %s", failed)
			}
			if verdict(t, law, func(t testing.TB) store.Store {
				m := broken()
				m.Store = open(t)
				return m
			}) == "" {
				t.Error("the law holds on a store that breaks it")
			}
		})
	}
	for name := range allMutants() {
		if !slices.ContainsFunc(Laws(), func(l Law) bool { return l.Name == name }) {
			t.Errorf("the mutant %s has no law", name)
		}
	}
}
