package sqlitestore

import (
	"context"
	"slices"
	"sync"

	"github.com/belfryhq/belfry/store"
)

// waker carries wake-ups between those who share a Store. Nobody else can open the file, so nobody else needs them.
type waker struct {
	mu        sync.Mutex
	listeners []*listener
	closed    chan struct{}
}

// listener calls back one at a time, and never again once Listen has returned.
type listener struct {
	mu    sync.Mutex
	heard func([]store.QueueHint) // nil when it has left
}

// Wake calls every listener before it returns.
func (s *Store) Wake(ctx context.Context, hints []store.QueueHint) error {
	if err := s.waker.check(ctx); err != nil {
		return err
	}
	s.waker.tell(hints)
	return nil
}

// tell calls every listener.
func (w *waker) tell(hints []store.QueueHint) {
	w.mu.Lock()
	listeners := slices.Clone(w.listeners)
	w.mu.Unlock()
	for _, l := range listeners {
		l.call(slices.Clone(hints))
	}
}

// Listen calls back for each wake-up until ctx ends or the store is closed.
func (s *Store) Listen(ctx context.Context, ready func(), heard func([]store.QueueHint)) error {
	if err := s.waker.check(ctx); err != nil {
		return err
	}
	l := &listener{heard: heard}
	s.waker.join(l)
	defer s.waker.part(l)
	if ready != nil {
		ready()
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-s.waker.closed:
		return store.ErrClosed
	}
}

// check says why there is nothing to do for a caller.
func (w *waker) check(ctx context.Context) error {
	select {
	case <-w.closed:
		return store.ErrClosed
	default:
		return ctx.Err()
	}
}

func (w *waker) join(l *listener) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.listeners = append(w.listeners, l)
}

// part returns once the listener's last callback has.
func (w *waker) part(l *listener) {
	w.mu.Lock()
	w.listeners = slices.DeleteFunc(w.listeners, func(other *listener) bool { return other == l })
	w.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heard = nil
}

func (w *waker) close() { close(w.closed) }

func (l *listener) call(hints []store.QueueHint) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.heard != nil {
		l.heard(hints)
	}
}
