package natstarget

import "sync"

// flusher makes one flush of those that are asked for while another is under way. A round trip to the server then
// confirms all that was published before it.
type flusher struct {
	flush func() (epoch uint64, err error)
	spawn func(func()) // starts a goroutine

	mu   sync.Mutex
	next *round // gathers those who ask while one is under way
	busy bool
}

// round is one flush.
type round struct {
	done  chan struct{}
	epoch uint64
	err   error
}

// wait returns when a flush that began after the call has ended.
func (f *flusher) wait() (epoch uint64, err error) {
	f.mu.Lock()
	if f.next == nil {
		f.next = &round{done: make(chan struct{})}
	}
	r, idle := f.next, !f.busy
	f.busy = true
	f.mu.Unlock()
	if idle {
		f.run()
	}
	<-r.done
	return r.epoch, r.err
}

// run makes the flush that is asked for, and leaves those that are asked for meanwhile to another goroutine.
func (f *flusher) run() {
	f.mu.Lock()
	r := f.next
	f.next = nil
	f.mu.Unlock()
	r.epoch, r.err = f.flush()
	close(r.done)

	f.mu.Lock()
	defer f.mu.Unlock()
	if f.next == nil {
		f.busy = false
		return
	}
	f.spawn(f.run)
}
