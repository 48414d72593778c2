package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/belfryhq/belfry/internal/testserver"
	"github.com/belfryhq/belfry/store"
	"github.com/belfryhq/belfry/store/redisstore"
)

func TestWhatWasAcceptedSurvivesAKilledServer(t *testing.T) {
	t.Parallel()
	server := testserver.StartRedis(t)
	s := openURL(t, server.URL, redisstore.Settings{})
	mustPut(t, s, start, messages("q", 100, start)...)
	held := claimed(t, s, start, "q", 10)
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(t.Context(), start, messages("down", 1, start), 0); err == nil {
		t.Error("a Put is accepted by a server that is down")
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	await(t, 5*time.Second, func() error { return s.Ping(t.Context()) })
	if n := total(t, s, store.Query{Queue: "q"}); n != 100 {
		t.Errorf("%d messages are there, 100 were accepted", n)
	}
	mustSettle(t, s, start, store.Settlement{Token: held[0].Token(), Outcome: store.OutcomeDone})
}

func TestAFrozenServerHoldsNobodyLongerThanTheContext(t *testing.T) {
	t.Parallel()
	server := testserver.StartRedis(t)
	s := openURL(t, server.URL, redisstore.Settings{})
	mustPut(t, s, start, messages("q", 1, start)...)
	if err := server.Freeze(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Thaw() }()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	from := time.Now()
	if _, err := s.Put(ctx, start, messages("frozen", 1, start), 0); err == nil {
		t.Error("a frozen server accepts")
	}
	if took := time.Since(from); took > 2*time.Second {
		t.Errorf("the answer took %v", took)
	}
	if err := server.Thaw(); err != nil {
		t.Fatal(err)
	}
	await(t, 5*time.Second, func() error {
		results, err := s.Put(t.Context(), start, messages("frozen", 1, start), 0) // the call is repeated as it is
		if err == nil && results[0].Err != nil && !errors.Is(results[0].Err, store.ErrExists) {
			err = results[0].Err
		}
		return err
	})
	if n := total(t, s, store.Query{Queue: "frozen"}); n != 1 {
		t.Errorf("%d messages are stored, want 1", n)
	}
}

func TestSentinelLeadsToTheNewMaster(t *testing.T) {
	t.Parallel()
	sentinel := testserver.StartRedisSentinel(t)
	s := openURL(t, sentinel.URL, redisstore.Settings{WaitReplicas: 1, WaitTimeout: 5 * time.Second})
	for i := range 30 {
		mustPut(t, s, start, message("q", fmt.Sprint("m", i), start))
	}
	if err := sentinel.Master.Kill(); err != nil {
		t.Fatal(err)
	}
	after := openLater(t, sentinel.URL, redisstore.Settings{})
	await(t, 30*time.Second, func() error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		results, err := after.Put(ctx, start, []store.Message{message("q", "after", start)}, 0)
		if err == nil && results[0].Err != nil && !errors.Is(results[0].Err, store.ErrExists) {
			err = results[0].Err
		}
		return err
	})
	if n := total(t, after, store.Query{Queue: "q"}); n != 31 {
		t.Errorf("%d messages are there, 31 were accepted", n)
	}
	// The store that was open finds the new master by itself; it refuses since nobody replicates.
	await(t, 10*time.Second, func() error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := s.Get(ctx, store.Key{Queue: "q", ID: "after"})
		return err
	})
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if _, err := s.Put(ctx, start, []store.Message{message("q", "unreplicated", start)}, 0); err == nil {
		t.Error("a write that no replica has is acknowledged")
	}
}
