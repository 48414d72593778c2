package memstore

import (
	"context"
	"slices"
	"sync"

	"github.com/belfryhq/belfry/store"
)

// listeners are those who listen for wake-ups.
type listeners struct {
	mu  sync.Mutex
	all []*listener
}

// listener calls back one at a time, and never again once Listen has returned.
type listener struct {
	mu    sync.Mutex
	heard func([]store.QueueHint) // nil when it has left
}

// Wake calls every listener before it returns.
func (s *Store) Wake(ctx context.Context, hints []store.QueueHint) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	s.mu.Unlock()
	s.tell(hints)
	return nil
}

// tell calls every listener. Called without the mutex.
func (s *Store) tell(hints []store.QueueHint) {
	s.wake.mu.Lock()
	all := slices.Clone(s.wake.all)
	s.wake.mu.Unlock()
	for _, l := range all {
		l.call(slices.Clone(hints))
	}
}

func (l *listener) call(hints []store.QueueHint) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.heard != nil {
		l.heard(hints)
	}
}

// Listen calls back for each wake-up until ctx ends or the store is closed.
func (s *Store) Listen(ctx context.Context, ready func(), heard func([]store.QueueHint)) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	s.mu.Unlock()
	l := &listener{heard: heard}
	s.wake.join(l)
	defer s.wake.part(l)
	if ready != nil {
		ready()
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-s.closed:
		return store.ErrClosed
	}
}

func (w *listeners) join(l *listener) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, l)
}

// part returns once the last callback has.
func (w *listeners) part(l *listener) {
	w.mu.Lock()
	w.all = slices.DeleteFunc(w.all, func(other *listener) bool { return other == l })
	w.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heard = nil
}
