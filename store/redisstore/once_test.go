package redisstore_test

import (
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/belfryhq/belfry/internal/testserver"
	"github.com/belfryhq/belfry/store"
	"github.com/belfryhq/belfry/store/redisstore"
)

// deaf is a proxy to a server that, once it is told so, passes on what it hears and breaks the connection in place of the
// next answer.
type deaf struct {
	net.Listener
	server string
	drops  atomic.Bool
}

func newDeaf(t *testing.T, server string) *deaf {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	p := &deaf{Listener: l, server: server}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go p.serve(conn)
		}
	}()
	return p
}

func (p *deaf) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", p.server)
	if err != nil {
		return
	}
	defer server.Close()
	go func() {
		_, _ = io.Copy(server, client)
		_ = server.Close()
	}()
	answer := make([]byte, 64<<10)
	for {
		n, err := server.Read(answer)
		if err != nil || n > 0 && p.drops.CompareAndSwap(true, false) {
			return
		}
		if _, err := client.Write(answer[:n]); err != nil {
			return
		}
	}
}

// A write whose answer was lost is not sent again by anybody below the caller, who would be told that the id is taken.
func TestAWriteWithoutAnAnswerIsSentOnce(t *testing.T) {
	t.Parallel()
	server := testserver.StartRedis(t, "--appendonly", "no")
	raw := rawClient(t, server.URL)
	proxy := newDeaf(t, strings.TrimSuffix(strings.TrimPrefix(server.URL, "redis://"), "/0"))
	s := openURL(t, "redis://"+proxy.Addr().String(), redisstore.Settings{})
	mustPut(t, s, start, message("q", "before", start))
	scripts := func() int {
		info := raw.InfoMap(t.Context(), "commandstats").Val()
		_, rest, _ := strings.Cut(info["Commandstats"]["cmdstat_evalsha"], "calls=")
		n := 0
		for _, c := range rest {
			if c < '0' || c > '9' {
				break
			}
			n = 10*n + int(c-'0')
		}
		return n
	}
	before := scripts()
	proxy.drops.Store(true)
	if _, err := s.Put(t.Context(), start, []store.Message{message("q", "m", start)}, 0); err == nil {
		t.Fatal("a Put without an answer returns no error")
	}
	if n := scripts() - before; n != 1 {
		t.Errorf("the script was sent %d times", n)
	}
	results, err := s.Put(t.Context(), start, []store.Message{message("q", "m", start)}, 0)
	if err != nil || !errors.Is(results[0].Err, store.ErrExists) {
		t.Errorf("the repeated Put gives %v, %v", results, err)
	}
	if n := total(t, s, store.Query{Queue: "q"}); n != 2 {
		t.Errorf("%d messages are stored, want 2", n)
	}
}

func TestAServerThatForgetsItsScriptsIsSentThemAgain(t *testing.T) {
	t.Parallel()
	server := testserver.StartRedis(t, "--appendonly", "no")
	s, raw := openURL(t, server.URL, redisstore.Settings{}), rawClient(t, server.URL)
	for i := range 3 {
		if err := raw.ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		ms := messages("q", 1200, start) // several calls in one pipeline
		for j := range ms {
			ms[j].ID += string(rune('a' + i))
		}
		mustPut(t, s, start, ms...)
	}
	if n := total(t, s, store.Query{Queue: "q"}); n != 3600 {
		t.Errorf("%d messages are stored, want 3600", n)
	}
}

// What is gone with all of a server's memory is gone, but the store must not go on as if queues were still registered.
func TestQueuesAreRegisteredAgainAfterAFlush(t *testing.T) {
	t.Parallel()
	server := testserver.StartRedis(t, "--appendonly", "no")
	s, raw := openURL(t, server.URL, redisstore.Settings{}), rawClient(t, server.URL)
	mustPut(t, s, start, message("q", "before", start), message("parent", "p", start))
	held := claimed(t, s, start, "parent", 1)
	if err := raw.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	mustPut(t, s, start, message("q", "after", start))
	if n := total(t, s, store.Query{}); n != 1 {
		t.Errorf("%d messages are found in all queues, want 1", n)
	}
	errs, err := s.Settle(t.Context(), start, []store.Settlement{{Token: held[0].Token(), Outcome: store.OutcomeDone}})
	if err != nil || !errors.Is(errs[0], store.ErrLeaseLost) {
		t.Errorf("a token of what is gone: %v, %v", errs, err)
	}
}
