package natstarget

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// How long what was found out about streams is believed.
const (
	streamTTL  = 3 * time.Second  // who listens on a subject
	absentTTL  = 30 * time.Second // that there is no JetStream on this connection
	deniedTTL  = time.Hour        // that it may not be asked on this connection
	outage     = 5 * time.Minute  // that JetStream, when it is silent, is only down
	askTimeout = 2 * time.Second
	maxKnown   = 4096 // subjects
)

// apiPrefix begins the subjects at which JetStream is asked.
const apiPrefix = "$JS.API."

// streams knows on which subjects streams listen that acknowledge.
type streams struct {
	log *slog.Logger
	ttl time.Duration

	mu       sync.Mutex
	known    map[string]knowledge
	asking   map[string]chan struct{} // closed when the answer is there
	session  *session                 // in which what is known was found out
	absent   time.Time                // until when there is no JetStream
	answered time.Time                // when there was
}

// knowledge is what was found out about a subject.
type knowledge struct {
	listening bool
	at        time.Time // zero: in an earlier session
}

func newStreams(log *slog.Logger) *streams {
	return &streams{log: log, ttl: streamTTL, known: make(map[string]knowledge), asking: make(map[string]chan struct{})}
}

// listening reports whether a stream listens on the subject that acknowledges. Fresh: as of now.
func (t *streams) listening(ctx context.Context, s *session, subject string, fresh bool) (bool, error) {
	for {
		k, ok, asking := t.look(s, subject, fresh)
		if ok {
			return k.listening, nil
		}
		if asking == nil {
			return t.find(ctx, s, subject)
		}
		select {
		case <-asking:
			fresh = false
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}

// look returns what is known about the subject. If that is nothing, it returns who is asking; nil: the caller has to.
func (t *streams) look(s *session, subject string, fresh bool) (k knowledge, ok bool, asking <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.begin(s)
	now := time.Now()
	if now.Before(t.absent) {
		return knowledge{}, true, nil
	}
	k = t.known[subject]
	if !fresh && now.Sub(k.at) < t.ttl {
		return k, true, nil
	}
	if asked, ok := t.asking[subject]; ok {
		return k, false, asked
	}
	t.asking[subject] = make(chan struct{})
	return k, false, nil
}

// begin marks what is known as old when the connection is another. The lock is held.
func (t *streams) begin(s *session) {
	if t.session == s {
		return
	}
	t.session, t.absent = s, time.Time{}
	for subject, k := range t.known {
		k.at = time.Time{}
		t.known[subject] = k
	}
}

// find asks JetStream and remembers the answer.
func (t *streams) find(ctx context.Context, s *session, subject string) (bool, error) {
	ctx, release := s.bind(ctx)
	defer release()
	listening, err := s.listening(ctx, subject)
	t.mu.Lock()
	defer t.mu.Unlock()
	close(t.asking[subject])
	delete(t.asking, subject)
	now := time.Now()
	switch {
	case err == nil:
		t.answered = now
		t.remember(subject, knowledge{listening, now})
		return listening, nil
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	case lost(err):
		return false, err
	case errors.Is(err, errForbidden):
		t.without(now.Add(deniedTTL), "JetStream may not be asked; publishing without acknowledgements", err)
		return false, nil
	}
	return t.guess(now, subject, err)
}

// guess says whether a stream listens when JetStream does not tell: as far as is known, and else not, unless JetStream
// was there a while ago, so that a message must not pass it by.
func (t *streams) guess(now time.Time, subject string, err error) (bool, error) {
	if k, ok := t.known[subject]; ok {
		t.remember(subject, knowledge{k.listening, now})
		return k.listening, nil
	}
	if now.Sub(t.answered) < outage && !errors.Is(err, errNoJetStream) {
		return false, plainError("JetStream does not tell whether a stream listens: " + describe(err))
	}
	t.without(now.Add(absentTTL), "there is no JetStream; publishing without acknowledgements", err)
	return false, nil
}

// without remembers that there is no JetStream until then, and says so the first time on a connection.
func (t *streams) without(until time.Time, what string, err error) {
	if t.absent.IsZero() {
		t.log.Info(what, "reason", describe(err))
	}
	t.absent = until
}

func (t *streams) remember(subject string, k knowledge) {
	if len(t.known) >= maxKnown {
		clear(t.known)
	}
	t.known[subject] = k
}

// listening asks JetStream whether a stream listens on the subject that acknowledges.
func (s *session) listening(ctx context.Context, subject string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	name, err := ask(ctx, s, apiPrefix+"STREAM.NAMES", func() (string, error) { return s.js.StreamNameBySubject(ctx, subject) })
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return false, nil
	case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		return false, errNoJetStream
	case err != nil:
		return false, err
	}
	stream, err := ask(ctx, s, apiPrefix+"STREAM.INFO."+name, func() (jetstream.Stream, error) { return s.js.Stream(ctx, name) })
	if err != nil {
		return true, nil // it listens; that it would not acknowledge is rare, and cannot be known
	}
	return !stream.CachedInfo().Config.NoAck, nil
}

// ask calls f, which sends a request to the subject, until it is answered, denied or ctx ends.
func ask[T any](ctx context.Context, s *session, subject string, f func() (T, error)) (T, error) {
	var none T
	w := s.denials.watch(subject)
	defer s.denials.unwatch(w)
	if s.denials.muted() { // since before it was watched
		return none, errForbidden
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s.calls.Go(func() {
		select {
		case <-w.denied:
			cancel(errForbidden)
		case <-ctx.Done():
		}
	})
	return call(ctx, s, f)
}
