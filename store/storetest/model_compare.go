package storetest

import (
	"errors"
	"slices"

	"github.com/belfryhq/belfry/store"
)

// verify compares what is stored under the keys with the model, and learns the versions that writes gave.
func (r *modelRun) verify(keys ...store.Key) {
	for _, key := range keys {
		got, err := r.s.Get(r.t.Context(), key)
		e := r.m.message(key)
		if e == nil {
			if !errors.Is(err, store.ErrNotFound) {
				r.fail("Get of %s, which is gone: %s, %v", modelKey(key), got.State, err)
			}
			continue
		}
		if err != nil {
			r.fail("Get of %s: %v", modelKey(key), err)
		}
		r.same("Get", got, e)
	}
}

// same compares a message with its entry and learns its version.
func (r *modelRun) same(what string, got store.Message, e *modelEntry, but ...string) {
	if d := diff(got, e.m, append(but, "Version")...); d != "" {
		r.fail("%s of %s: %s", what, modelKey(e.m.Key()), d)
	}
	was := e.m.Version
	if err := r.m.saw(e, got.Version); err != nil {
		r.fail("%s of %s: the version is %d after %d: %v", what, modelKey(e.m.Key()), got.Version, was, err)
	}
}

// audit compares everything there is.
func (r *modelRun) audit() {
	for _, queue := range modelQueueNames {
		for _, id := range modelIDs {
			r.verify(store.Key{Queue: queue, ID: id})
		}
	}
	for order := store.ByCreated; order <= store.ByFinished; order++ {
		(&modelList{store.Query{Order: order, Limit: 1000, Payloads: true}}).play(r)
	}
	for state := store.Scheduled; state <= store.Canceled; state++ {
		(&modelList{store.Query{States: []store.State{state}, Limit: 1000}}).play(r)
	}
	(&modelQueues{}).play(r)
	(&modelDocs{}).play(r)
}

func (r *modelRun) sameError(what string, got, want error) {
	if !modelSameError(got, want) {
		r.fail("%s gave the error %v, want %v", what, got, want)
	}
}

// sameExisting compares what a refused Put says of the message in its way. In a batch its version may be yet unseen.
func (r *modelRun) sameExisting(got *store.Message, by *modelEntry) {
	if got == nil {
		r.fail("a refused Put carries no message, want %s", modelKey(by.m.Key()))
	}
	want, but := by.m, []string{"Payload", "History"}
	if by.trace {
		want = store.Message{Queue: by.m.Queue, ID: by.m.ID, State: store.Done}
	} else if by.wrote {
		but = append(but, "Version")
	}
	if d := diff(*got, want, but...); d != "" {
		r.fail("a refused Put carries %s: %s", modelKey(got.Key()), d)
	}
	if got.Payload != nil || len(got.History) > 0 {
		r.fail("a refused Put carries payload or history of %s", modelKey(got.Key()))
	}
}

// sameClaimed compares what a claim gave with what it should, in order.
func (r *modelRun) sameClaimed(got []store.Message, want []*modelEntry) {
	gotKeys, wantKeys := []string{}, []string{}
	for _, m := range got {
		gotKeys = append(gotKeys, modelKey(m.Key()))
	}
	for _, e := range want {
		wantKeys = append(wantKeys, modelKey(e.m.Key()))
	}
	if !slices.Equal(gotKeys, wantKeys) {
		r.fail("Claim gave %s, want %s", brief(gotKeys), brief(wantKeys))
	}
	for i, m := range got {
		if len(m.History) > 0 {
			r.fail("Claim gave the history of %s", gotKeys[i])
		}
		r.same("Claim", m, want[i], "History")
	}
}

// sameLeft compares what a claim says is left in a queue.
func (r *modelRun) sameLeft(queue string, got store.QueueNext, want modelLeft) {
	if got.Next.After(want.next) {
		r.fail("Claim says that %s is next visible at %s, want %s", queue, modelInstant(got.Next), modelInstant(want.next))
	}
	if got.Limited != want.limited {
		r.fail("Claim says that %s is limited: %t, want %t", queue, got.Limited, want.limited)
	}
	if !want.limited {
		return
	}
	for _, at := range want.freeAt {
		if got.FreeAt.Equal(at) {
			return
		}
	}
	r.fail("Claim says that %s is free at %s, want %s", queue, modelInstant(got.FreeAt), modelInstant(want.freeAt[0]))
}

// sameList compares a page with what it should be.
func (r *modelRun) sameList(got []store.Message, want []*modelEntry, payloads bool) {
	gotKeys, wantKeys := []string{}, []string{}
	for _, m := range got {
		gotKeys = append(gotKeys, modelKey(m.Key()))
	}
	for _, e := range want {
		wantKeys = append(wantKeys, modelKey(e.m.Key()))
	}
	if !slices.Equal(gotKeys, wantKeys) {
		r.fail("List gave %s, want %s", brief(gotKeys), brief(wantKeys))
	}
	but := []string{"History"}
	if !payloads {
		but = append(but, "Payload")
	}
	for i, m := range got {
		if len(m.History) > 0 || !payloads && m.Payload != nil {
			r.fail("List gave the history or payload of %s", gotKeys[i])
		}
		r.same("List", m, want[i], but...)
	}
}
