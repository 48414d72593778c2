package storetest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/belfryhq/belfry/store"
)

func replaceLaws() []Law {
	return []Law{
		{"replace/fields", "a change writes all but what the store owns, creation and history, and raises the version by one", replaceFields},
		{"replace/conflict", "a change at another version is refused and changes nothing", replaceConflict},
		{"replace/missing", "a change of what is not stored is refused", replaceMissing},
		{"replace/in-flight", "a change is refused under a live lease; once the lease ran out it is made and the token is stale", replaceInFlight},
		{"replace/revive", "a finished message that is made scheduled is delivered again", replaceRevive},
		{"replace/cancel", "a message that is canceled is never claimed, whether it is kept or removed", replaceCancel},
		{"replace/dedup", "a change that takes a held dedup key is refused and changes nothing", replaceDedup},
		{"replace/each", "each change of a batch stands for itself", replaceEach},
		{"replace/race", "of changes made at once at one version, one is made", replaceRace},
		{"replace/cancel-race", "a message is canceled or claimed, never both: no delivery after a cancel that said yes", replaceCancelRace},
	}
}

func replaceFields(e *env) {
	q := e.name()
	for i, m := range e.holders(q, func(m *store.Message) { m.DedupKey = m.ID }) {
		for j, state := range append(finished, store.Scheduled) {
			e.step("%s to %s", e.get(m.Key()).State, state)
			before, now := e.get(m.Key()), at(lease+time.Duration(j)*time.Second+999)
			want := full(q, m.ID, state, 4*i+j)
			want.Version, want.Gate, want.DedupKey = before.Version, &store.Gate{Group: want.Group}, m.ID
			e.replace(now, want)
			got := e.get(m.Key())
			want.Gate, want.CreatedAt, want.History, want.Version = nil, before.CreatedAt, before.History, before.Version+1
			want.UpdatedAt, want.Owner, want.Epoch, want.Stop, want.Waits = store.Floor(now), "", 0, false, 0
			want.VisibleAt = time.Time{}
			if state.Live() {
				want.VisibleAt = want.DueAt
			}
			e.same(got, want)
		}
	}
}

func replaceConflict(e *env) {
	q := e.name()
	for _, m := range e.holders(q, func(*store.Message) {}) {
		before := e.get(m.Key())
		for _, version := range []int64{0, before.Version - 1, before.Version + 1} {
			for _, state := range []store.State{store.Scheduled, store.Canceled} {
				e.step("%s made %s at %d", m.ID, state, version-before.Version)
				change := full(q, m.ID, state, 1)
				change.Version = version
				e.is(e.tryReplace(at(lease), store.Swap, change), store.ErrConflict, "Replace at another version")
				e.same(e.get(m.Key()), before)
			}
		}
	}
}

func replaceMissing(e *env) {
	q := e.name()
	m := e.message(q, "m", start)
	m.State, m.Version = store.Scheduled, e.put(start, m)[0]
	for what, key := range map[string]store.Key{"another id": {Queue: q, ID: "M"}, "another queue": {Queue: e.name(), ID: "m"}} {
		e.step("%s", what)
		other := m
		other.Queue, other.ID = key.Queue, key.ID
		for _, mode := range []store.ChangeMode{store.Swap, store.Revoke, store.Mark} {
			e.is(e.tryReplace(start, mode, other), store.ErrNotFound, "Replace")
		}
		e.absent(key)
	}
	e.step("removed")
	m.State = store.Done
	e.replace(start, m)
	m.Version++
	e.is(e.tryReplace(start, store.Swap, m), store.ErrNotFound, "Replace")
}

func replaceInFlight(e *env) {
	q := e.name()
	for _, state := range append(finished, store.Scheduled) {
		e.step("to %s", state)
		m := e.hold(start, e.message(q, e.name(), start))
		change := full(q, m.ID, state, int(state))
		change.Version = m.Version
		e.is(e.tryReplace(at(lease-time.Millisecond), store.Swap, change), store.ErrInFlight, "Replace under a live lease")
		e.same(e.get(m.Key()), m)
		equal(e, "Extend", e.extend(start, m.Token(), at(lease)), store.Extended)
		e.replace(at(lease), change)
		equal(e, "State", e.get(m.Key()).State, state)
		e.stale(at(lease), m.Token())
	}
}

func replaceRevive(e *env) {
	q := e.name()
	for _, m := range e.holders(q, func(*store.Message) {})[2:] {
		e.step("%s", m.ID)
		revived := e.get(m.Key())
		revived.State, revived.DueAt, revived.FinishedAt, revived.PurgeAt = store.Scheduled, at(time.Hour), time.Time{}, time.Time{}
		revived.Attempts, revived.Claims = 0, 0
		e.replace(start, revived)
		e.ids(e.claimKeys(at(time.Hour-time.Millisecond), m.Key()))
		got := only(e, e.claimKeys(at(time.Hour), m.Key()))
		e.same(got, revived, append(owned, "State", "Claims", "History")...)
		equal(e, "messages counted as "+m.ID, e.total(store.Query{Queue: q, States: []store.State{m.State}}), 0)
		e.settle(at(time.Hour), store.Settlement{Token: got.Token(), Outcome: store.OutcomeRetry, At: at(2 * time.Hour), Attempt: &store.Attempt{Number: 2}})
		equal(e, "attempts in History", len(e.get(m.Key()).History), 2)
		equal(e, "purged", e.get(m.Key()).PurgeAt.IsZero(), true)
	}
}

func replaceCancel(e *env) {
	q := e.name()
	for i, purge := range []time.Time{store.Never, at(time.Millisecond), start, {}} {
		e.step("kept until %s", brief(purge))
		m := e.message(q, e.name(), start)
		m.Version = e.put(start, m)[0]
		m.State, m.FinishedAt, m.PurgeAt = store.Canceled, start, purge
		e.replace(start, m)
		e.ids(e.claim(at(time.Hour), q, 10))
		e.ids(e.claimKeys(at(time.Hour), m.Key()))
		if i < 2 {
			e.same(e.get(m.Key()), m, append(owned, "CreatedAt", "DueAt")...)
			continue
		}
		e.absent(m.Key())
		e.put(at(time.Hour), e.message(q, m.ID, at(24*time.Hour))) // its id is free
	}
	e.step("a finished one is removed")
	m := e.message(q, "done", start)
	m.State, m.PurgeAt = store.Done, store.Never
	m.Version = e.put(start, m)[0]
	m.PurgeAt = time.Time{}
	e.replace(start, m)
	e.absent(m.Key())
}

func replaceDedup(e *env) {
	q := e.name()
	for _, holder := range e.holders(q, func(m *store.Message) { m.DedupKey, m.DedupUntil = m.ID, at(time.Hour) }) {
		e.step("held by %s", holder.ID)
		m := e.message(q, e.name(), start)
		e.put(start, m)
		before := e.get(m.Key())
		change := before
		change.DedupKey, change.Kind = holder.DedupKey, "changed"
		e.is(e.tryReplace(at(time.Second), store.Swap, change), store.ErrDuplicate, "Replace")
		e.same(e.get(m.Key()), before)
	}
	e.step("free")
	m := e.get(store.Key{Queue: q, ID: "scheduled"})
	m.DedupKey = "free"
	e.replace(start, m)
	other := e.message(q, "other", start)
	other.DedupKey = "scheduled"
	e.put(start, other)
	e.step("revived while another holds its key")
	done := e.get(store.Key{Queue: q, ID: "done"})
	taker := e.message(q, "taker", start)
	taker.DedupKey = "done"
	e.put(at(time.Hour), taker)
	done.State = store.Scheduled
	e.is(e.tryReplace(at(time.Hour), store.Swap, done), store.ErrDuplicate, "Replace")
	equal(e, "State", e.get(done.Key()).State, store.Done)
	e.step("its own")
	dead := e.get(store.Key{Queue: q, ID: "dead"})
	dead.State = store.Scheduled
	e.replace(at(time.Second), dead)
}

func replaceEach(e *env) {
	q := e.name()
	e.put(start, e.messages(q, 4, start)...)
	e.ids(e.claim(start, q, 1), "m0000000")
	var changes []store.Change
	for i := range 4 {
		m := e.get(store.Key{Queue: q, ID: fmt.Sprintf("m%07d", i)})
		m.State, m.DueAt, m.Kind = store.Scheduled, at(time.Hour), "changed"
		if i == 2 {
			m.Version--
		}
		changes = append(changes, store.Change{Message: m})
	}
	changes = append(changes, changes[1], store.Change{Message: e.message(q, "missing", start)})
	errs, err := e.s.Replace(e.Context(), start, changes)
	e.is(err, nil, "Replace")
	equal(e, "results", len(errs), len(changes))
	for i, want := range []error{store.ErrInFlight, nil, store.ErrConflict, nil, store.ErrConflict, store.ErrNotFound} {
		e.step("change %d", i)
		e.is(errs[i], want, "Replace")
	}
	equal(e, "messages changed", e.total(store.Query{Queue: q, Kind: "changed"}), 2)
}

func replaceRace(e *env) {
	m := e.message(e.name(), "m", start)
	m.State, m.Version = store.Scheduled, e.put(start, m)[0]
	var made atomic.Int32
	e.together(32, func(i int) error {
		change := m
		change.Payload = fmt.Append(nil, i)
		errs, err := e.s.Replace(e.Context(), start, []store.Change{{Message: change}})
		if err != nil || len(errs) != 1 {
			return fmt.Errorf("replace gave %d results and %w", len(errs), err)
		}
		if errs[0] == nil {
			made.Add(1)
		} else if !errors.Is(errs[0], store.ErrConflict) {
			return errs[0]
		}
		return nil
	})
	equal(e, "changes made", made.Load(), 1)
	equal(e, "Version", e.get(m.Key()).Version, m.Version+1)
}

func replaceCancelRace(e *env) {
	q, n := e.name(), e.scale.pick(60, 200, 1000)
	ms := e.messages(q, n, start)
	for i, version := range e.put(start, ms...) {
		ms[i].Version, ms[i].State, ms[i].PurgeAt = version, store.Canceled, store.Never
		if i%2 == 0 {
			ms[i].PurgeAt = time.Time{}
		}
	}
	var canceled, claimed sync.Map
	e.together(16, func(i int) error {
		if i%2 == 0 {
			for j := i / 2; j < n; j += 8 {
				errs, err := e.s.Replace(e.Context(), start, []store.Change{{Message: ms[j]}})
				if err != nil || len(errs) != 1 {
					return fmt.Errorf("replace gave %d results and %w", len(errs), err)
				}
				if errs[0] == nil {
					canceled.Store(ms[j].ID, true)
				}
			}
			return nil
		}
		for range n / 8 {
			got, err := e.s.Claim(e.Context(), store.Claim{Now: start, Until: at(lease), Queues: []store.QueueClaim{{Queue: q, Limit: 1}}})
			if err != nil {
				return err
			}
			for _, m := range got.Messages {
				claimed.Store(m.ID, true)
			}
		}
		return nil
	})
	for _, m := range e.claim(start, q, n) {
		claimed.Store(m.ID, true)
	}
	for _, m := range ms {
		_, yes := canceled.Load(m.ID)
		_, delivered := claimed.Load(m.ID)
		if yes == delivered {
			e.fail("%q: canceled %t, claimed %t", m.ID, yes, delivered)
		}
	}
}
