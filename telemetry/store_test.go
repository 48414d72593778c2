package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfryhq/belfry/store"
	"github.com/belfryhq/belfry/store/memstore"
	"github.com/belfryhq/belfry/telemetry"
)

func message(id string) store.Message {
	return store.Message{Queue: "q", ID: id, Kind: "k", FireAt: epoch, State: store.Scheduled}
}

// claimed puts messages and claims them.
func claimed(t *testing.T, s store.Store, ids ...string) []store.Message {
	t.Helper()
	messages := make([]store.Message, len(ids))
	for i, id := range ids {
		messages[i] = message(id)
	}
	if _, err := s.Put(t.Context(), epoch, messages, 0); err != nil {
		t.Fatal(err)
	}
	got, err := s.Claim(t.Context(), store.Claim{
		Now: epoch, Until: epoch.Add(30 * time.Second), Queues: []store.QueueClaim{{Queue: "q", Limit: 100}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Messages) != len(ids) {
		t.Fatalf("claimed %d of %d", len(got.Messages), len(ids))
	}
	return got.Messages
}

func TestCountsAnswersToPut(t *testing.T) {
	t.Parallel()
	m := newScraped(t, telemetry.MetricsSettings{})
	s := m.Store(memstore.New())
	first, twin, duplicate := message("a"), message("a"), message("b")
	first.DedupKey, duplicate.DedupKey = "key", "key"
	if _, err := s.Put(t.Context(), epoch, []store.Message{first, twin, duplicate, message("c")}, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(t.Context(), epoch, []store.Message{message("d"), message("a")}, store.Atomic); err != nil {
		t.Fatal(err)
	}
	m.want(2, "belfry_messages_put_total", "result", "accepted")
	m.want(2, "belfry_messages_put_total", "result", "exists")
	m.want(1, "belfry_messages_put_total", "result", "duplicate")
	m.want(1, "belfry_messages_put_total", "result", "aborted")
	m.want(2, "belfry_store_call_seconds", "op", "put")
	if got := m.sum("belfry_store_batch_messages", "op", "put"); got != 6 {
		t.Errorf("the batches of put add up to %v, want 6", got)
	}
}

func TestCountsClaimsOutcomesAndFollowUps(t *testing.T) {
	t.Parallel()
	m := newScraped(t, telemetry.MetricsSettings{})
	s := m.Store(memstore.New())
	leased := claimed(t, s, "a", "b", "c", "d", "e")
	outcomes := []store.Outcome{
		store.OutcomeDone, store.OutcomeRetry, store.OutcomeRelease, store.OutcomeBury, store.OutcomeCancel,
	}
	settlements := make([]store.Settlement, len(outcomes))
	for i, outcome := range outcomes {
		settlements[i] = store.Settlement{Token: leased[i].Token(), Outcome: outcome, At: epoch.Add(time.Hour)}
	}
	child := message("child")
	child.Parent = "a"
	settlements[0].FollowUps = []store.Message{child}
	for range 2 { // the second time every token is stale
		if _, err := s.Settle(t.Context(), epoch, settlements); err != nil {
			t.Fatal(err)
		}
	}
	m.want(5, "belfry_messages_claimed_total")
	for _, result := range []string{"done", "retry", "release", "dead", "canceled"} {
		m.want(1, "belfry_settlements_total", "result", result)
	}
	m.want(5, "belfry_settlements_total", "result", "lease_lost")
	m.want(1, "belfry_follow_ups_total")
}

func TestCountsLostLeases(t *testing.T) {
	t.Parallel()
	m := newScraped(t, telemetry.MetricsSettings{})
	s := m.Store(memstore.New())
	leased := claimed(t, s, "a", "b")
	tokens := []store.Token{leased[0].Token(), leased[1].Token(), {Queue: "q", ID: "gone", Version: 1}}
	if _, err := s.Extend(t.Context(), epoch, tokens, epoch.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	m.want(2, "belfry_extensions_total", "result", "extended")
	m.want(1, "belfry_extensions_total", "result", "lost")
	if _, err := s.Extend(t.Context(), epoch, tokens, time.Time{}); err != nil {
		t.Fatal(err)
	}
	m.want(2, "belfry_extensions_total", "result", "extended") // a question extends nothing
	m.want(2, "belfry_extensions_total", "result", "lost")
	m.want(1, "belfry_store_call_seconds", "op", "extend")
	m.want(1, "belfry_store_call_seconds", "op", "ask")
}

func TestCountsChangesPurgesAndForfeits(t *testing.T) {
	t.Parallel()
	m := newScraped(t, telemetry.MetricsSettings{})
	s := m.Store(memstore.New())
	leased := claimed(t, s, "a", "b")
	stale := message("waits") // without a version
	if _, err := s.Put(t.Context(), epoch, []store.Message{stale}, 0); err != nil {
		t.Fatal(err)
	}
	held := leased[0]
	held.State = store.Scheduled
	changes := []store.Change{{Message: held}, {Message: message("gone")}, {Message: stale}}
	if _, err := s.Replace(t.Context(), epoch, changes); err != nil {
		t.Fatal(err)
	}
	m.want(1, "belfry_changes_total", "result", "in_flight")
	m.want(1, "belfry_changes_total", "result", "not_found")
	m.want(1, "belfry_changes_total", "result", "conflict")
	if _, err := s.Settle(t.Context(), epoch, []store.Settlement{
		{Token: leased[0].Token(), Outcome: store.OutcomeDone, PurgeAt: epoch.Add(time.Second)},
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Purge(t.Context(), epoch.Add(time.Minute), 10); err != nil {
		t.Fatal(err)
	}
	m.want(1, "belfry_messages_purged_total")
	if _, err := s.Forfeit(t.Context(), epoch, "", 1); err != nil {
		t.Fatal(err)
	}
	m.want(1, "belfry_leases_forfeited_total")
}

// failing is a store all of whose calls fail.
type failing struct {
	store.Store
	err error
}

func (f failing) Claim(context.Context, store.Claim) (store.Claimed, error) {
	return store.Claimed{}, f.err
}

func (f failing) Get(context.Context, store.Key) (store.Message, error) {
	return store.Message{}, f.err
}

type timeoutError struct{}

func (timeoutError) Error() string { return "i/o timeout" }
func (timeoutError) Timeout() bool { return true }

func TestSortsErrorsIntoClasses(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancelLate := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancelLate()
	for _, c := range []struct {
		rule  string
		ctx   context.Context
		err   error
		class string // empty: no error
	}{
		{"nil is none", t.Context(), nil, ""},
		{"an answer is none", t.Context(), fmt.Errorf("get: %w", store.ErrNotFound), ""},
		{"a canceled call", t.Context(), fmt.Errorf("claim: %w", context.Canceled), "canceled"},
		{"a driver's own word for a canceled call", ended, errors.New("interrupted"), "canceled"},
		{"a deadline", t.Context(), context.DeadlineExceeded, "timeout"},
		{"a driver's own word for a deadline", late, errors.New("interrupted"), "timeout"},
		{"the driver's timeout", t.Context(), fmt.Errorf("read: %w", timeoutError{}), "timeout"},
		{"the system's timeout", t.Context(), os.ErrDeadlineExceeded, "timeout"},
		{"a closed store", ended, fmt.Errorf("claim: %w", store.ErrClosed), "closed"},
		{"all else", t.Context(), errors.New("disk full"), "other"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			m := newScraped(t, telemetry.MetricsSettings{BacklogEvery: -1, CountEvery: -1})
			s := m.Store(failing{memstore.New(), c.err})
			if _, err := s.Get(c.ctx, store.Key{}); !errors.Is(err, c.err) {
				t.Fatalf("the error was changed to %v", err)
			}
			for _, class := range []string{"canceled", "timeout", "closed", "other"} {
				want := 0.0
				if class == c.class {
					want = 1
				}
				m.want(want, "belfry_store_errors_total", "op", "get", "class", class)
			}
		})
	}
}

func TestFindsOptionalPowersThroughTheWrapper(t *testing.T) {
	t.Parallel()
	m := newScraped(t, telemetry.MetricsSettings{})
	inner := memstore.New()
	wrapped := m.Store(inner)
	waker, ok := store.Power[store.Waker](wrapped)
	if !ok || waker != store.Waker(inner) {
		t.Errorf("Power[Waker] = %v, %v, want the memory store", waker, ok)
	}
	if _, ok := store.Power[store.Transactor](wrapped); ok {
		t.Error("the wrapper claims a power that the store has not")
	}
}

func TestMeasuresEveryCall(t *testing.T) {
	t.Parallel()
	unmeasured := map[string]bool{"Docs": true, "Inspect": true, "Close": true}
	for _, contract := range []struct {
		typ  reflect.Type
		from func(store.Store) any
	}{
		{reflect.TypeFor[store.Store](), func(s store.Store) any { return s }},
		{reflect.TypeFor[store.Docs](), func(s store.Store) any { return s.Docs() }},
	} {
		for method := range contract.typ.Methods() {
			if unmeasured[method.Name] {
				continue
			}
			m := newScraped(t, telemetry.MetricsSettings{BacklogEvery: -1, CountEvery: -1})
			receiver := reflect.ValueOf(contract.from(m.Store(memstore.New()))).MethodByName(method.Name)
			args := []reflect.Value{reflect.ValueOf(t.Context())}
			for i := 1; i < method.Type.NumIn(); i++ {
				args = append(args, reflect.Zero(method.Type.In(i)))
			}
			receiver.Call(args)
			if calls, _ := m.value("belfry_store_call_seconds"); calls != 1 {
				t.Errorf("%v.%s was measured %v times", contract.typ, method.Name, calls)
			}
		}
	}
}

// clocked is a store whose clock is ahead of the local one, and which takes its time.
type clocked struct {
	store.Store
	ahead, delay time.Duration
}

func (c clocked) Claim(ctx context.Context, claim store.Claim) (store.Claimed, error) {
	time.Sleep(c.delay)
	now := time.Now().Add(c.ahead)
	time.Sleep(c.delay)
	claimed, err := c.Store.Claim(ctx, claim)
	claimed.StoreNow = now
	return claimed, err
}

func TestShowsTheSkewOfClocks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newScraped(t, telemetry.MetricsSettings{})
		s := m.Store(clocked{memstore.New(), -3 * time.Second, time.Second})
		near := m.Store(clocked{memstore.New(), time.Second, 0})
		if _, known := m.value("belfry_clock_skew_seconds"); known {
			t.Error("the skew is known before the store told its time")
		}
		for _, s := range []store.Store{s, near} {
			if _, err := s.Claim(t.Context(), store.Claim{Now: epoch, Until: epoch.Add(time.Second)}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		m.want(-3, "belfry_clock_skew_seconds")
	})
}

func TestWrapperAllocatesNothing(t *testing.T) {
	m := newScraped(t, telemetry.MetricsSettings{})
	s := m.Store(void{store.Store(memstore.New())})
	messages, tokens := make([]store.Message, 10), make([]store.Token, 10)
	settlements := make([]store.Settlement, 10)
	for i := range settlements {
		settlements[i].Outcome = store.OutcomeDone
	}
	allocs := testing.AllocsPerRun(100, func() {
		_, _ = s.Put(t.Context(), epoch, messages, 0)
		_, _ = s.Claim(t.Context(), store.Claim{})
		_, _ = s.Extend(t.Context(), epoch, tokens, epoch)
		_, _ = s.Settle(t.Context(), epoch, settlements)
		_, _ = s.Docs().Revision(t.Context())
	})
	if allocs != 0 {
		t.Errorf("five calls allocate %v times", allocs)
	}
}

// void is a store that does nothing at no cost.
type void struct{ store.Store }

var (
	voidPut    = make([]store.PutResult, 1000)
	voidErrors = make([]error, 1000)
	voidHeld   = make([]store.Held, 1000)
	voidLeased = make([]store.Message, 100)
)

func (void) Put(_ context.Context, _ time.Time, messages []store.Message, _ store.PutMode) ([]store.PutResult, error) {
	return voidPut[:len(messages)], nil
}

func (void) Claim(context.Context, store.Claim) (store.Claimed, error) {
	return store.Claimed{Messages: voidLeased}, nil
}

func (void) Settle(_ context.Context, _ time.Time, settlements []store.Settlement) ([]error, error) {
	return voidErrors[:len(settlements)], nil
}

func (void) Extend(_ context.Context, _ time.Time, tokens []store.Token, _ time.Time) ([]store.Held, error) {
	return voidHeld[:len(tokens)], nil
}
