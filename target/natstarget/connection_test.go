package natstarget_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/belfryhq/belfry/target"
	"github.com/belfryhq/belfry/target/natstarget"
)

// journal is a log that can be read while it is written.
type journal struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.String()
}

// eventually delivers until that succeeds.
func eventually(t *testing.T, tgt *natstarget.Target, d target.Delivery) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for {
		err := tgt.Deliver(ctx, d)
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("it still fails: %v", err)
		}
	}
}

func TestAServerThatComesLaterIsConnectedTo(t *testing.T) {
	t.Parallel()
	p := newProxy(t, "")
	p.set(refuse)
	log := &journal{}
	start := time.Now()
	tgt := newTarget(t, natstarget.Settings{
		URL:         strings.Replace(p.url(), "nats://", "nats://user:canary@", 1),
		ConnectWait: 100 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(log, nil)),
	})
	if took := time.Since(start); took > time.Second {
		t.Errorf("New took %v", took)
	}
	err := tgt.Deliver(t.Context(), target.Delivery{Address: subject})
	if took := time.Since(start); took > 3*time.Second {
		t.Errorf("a delivery without a server took %v", took)
	}
	if err == nil || !strings.HasPrefix(err.Error(), "not connected to NATS: ") || strings.Contains(err.Error(), "canary") {
		t.Errorf("the error is %v", err)
	}
	p.redirect(address(startServer(t, func(o *server.Options) { o.Username, o.Password = "user", "canary" })))
	p.set(forward)
	eventually(t, tgt, target.Delivery{Address: subject})
	if text := log.String(); strings.Contains(text, "canary") || strings.Count(text, "cannot be reached") > 3 || !strings.Contains(text, "connected to NATS") {
		t.Errorf("the log is:\n%s", text)
	}
}

func TestAServerThatRestartsIsDeliveredToAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	same := func(o *server.Options) { o.StoreDir = dir }
	first := startServer(t, same)
	p := newProxy(t, address(first))
	onDisk := events
	onDisk.Storage = jetstream.FileStorage
	createStream(t, connect(t, first), onDisk)
	tgt := newTarget(t, natstarget.Settings{URL: p.url(), ConnectWait: 50 * time.Millisecond})
	for _, subject := range []string{subject, "core.timer"} {
		if err := tgt.Deliver(t.Context(), target.Delivery{ID: "before", Address: subject}); err != nil {
			t.Fatal(err)
		}
	}
	stop(first)
	for _, subject := range []string{subject, "core.timer"} {
		start := time.Now()
		err := tgt.Deliver(t.Context(), target.Delivery{ID: "during", Address: subject})
		if verdict, _, _ := target.Judge(err); verdict != target.Retry {
			t.Errorf("%s: the verdict of %v is %d", subject, err, verdict)
		}
		if took := time.Since(start); took > 3*time.Second {
			t.Errorf("%s: it took %v", subject, took)
		}
	}
	second := startServer(t, same)
	p.redirect(address(second))
	eventually(t, tgt, target.Delivery{ID: "during", Address: subject})
	eventually(t, tgt, target.Delivery{ID: "during", Address: "core.timer"})
	if n := count(t, createStream(t, connect(t, second), onDisk)); n != 2 {
		t.Errorf("the stream holds %d messages, want 2", n)
	}
}

func TestAWrongPasswordIsToldAndTriedAgainUntilTheServerTakesIt(t *testing.T) {
	t.Parallel()
	log := &journal{}
	options := &server.Options{}
	s := startServer(t, func(o *server.Options) {
		o.Users = []*server.User{{Username: "belfry", Password: "other"}}
		*options = *o
	})
	tgt := newTarget(t, natstarget.Settings{
		URL: "nats://" + address(s), User: "belfry", Password: "canary", ConnectWait: 60 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(log, nil)),
	})
	told := 0
	for range 20 { // more often than the client would try
		err := tgt.Deliver(t.Context(), target.Delivery{Address: subject})
		if err == nil {
			t.Fatal("it was delivered")
		}
		if err.Error() == "not connected to NATS: authorization violation" {
			told++
		}
	}
	if told < 10 { // the first may be made while there is no answer yet
		t.Errorf("the reason was told %d times of 20", told)
	}
	options.Users = []*server.User{{Username: "belfry", Password: "canary"}}
	if err := s.ReloadOptions(options); err != nil {
		t.Fatal(err)
	}
	eventually(t, tgt, target.Delivery{Address: subject})
	if strings.Contains(log.String(), "canary") {
		t.Errorf("the log is:\n%s", log)
	}
}

func TestAClientThatHasGivenUpIsReplaced(t *testing.T) {
	t.Parallel()
	s := startServer(t, nil)
	p := newProxy(t, address(s))
	tgt := newTarget(t, natstarget.Settings{URL: p.url(), ConnectWait: 5 * time.Second})
	if err := tgt.Deliver(t.Context(), target.Delivery{Address: subject}); err != nil {
		t.Fatal(err)
	}
	before, err := tgt.Client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	closed := before.StatusChanged(nats.CLOSED)
	p.say("-ERR 'An Error That Ends It All'\r\n")
	<-closed
	eventually(t, tgt, target.Delivery{Address: subject})
	after, err := tgt.Client(t.Context())
	if err != nil || after == before {
		t.Errorf("the client is the same (error %v)", err)
	}
}

func TestAMessageThatWasLostWithItsConnectionIsNotConfirmedByTheNext(t *testing.T) {
	t.Parallel()
	s := startServer(t, nil)
	p := newProxy(t, address(s))
	tgt := newTarget(t, natstarget.Settings{URL: p.url()})
	err := tgt.ConfirmAfter(t.Context(), subject, func(conn *nats.Conn) {
		again := conn.StatusChanged(nats.CONNECTED)
		if err := conn.ForceReconnect(); err != nil {
			t.Error(err)
		}
		<-again
	})
	if err == nil || err.Error() != "the connection to NATS was lost before the message was confirmed" {
		t.Errorf("the error is %v", err)
	}
}

func TestNothingIsHeldBackToBeSentLater(t *testing.T) {
	t.Parallel()
	s := startServer(t, nil)
	p := newProxy(t, address(s))
	tgt := newTarget(t, natstarget.Settings{URL: p.url()})
	conn, err := tgt.Client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	away := conn.StatusChanged(nats.RECONNECTING)
	p.set(refuse)
	<-away
	if err := conn.Publish(subject, []byte("later")); !errors.Is(err, nats.ErrReconnectBufExceeded) {
		t.Errorf("the error is %v", err)
	}
}

func TestAServerThatDoesNotGreetIsNoHang(t *testing.T) {
	t.Parallel()
	s := startServer(t, nil)
	p := newProxy(t, address(s))
	p.set(stall)
	tgt := newTarget(t, natstarget.Settings{URL: p.url(), ConnectWait: 100 * time.Millisecond})
	start := time.Now()
	failed(t, tgt.Deliver(t.Context(), target.Delivery{Address: subject}), "not connected to NATS: connecting")
	tgt.Close()
	if took := time.Since(start); took > 3*time.Second {
		t.Errorf("a delivery and Close took %v", took)
	}
}

func TestTheOperatorsDialerMakesTheConnections(t *testing.T) {
	t.Parallel()
	s := startServer(t, nil)
	dialed := make(chan string, 1)
	tgt := newTarget(t, natstarget.Settings{URL: "nats://nats.internal:4222", Dialer: dialFunc(func(network, to string) (net.Conn, error) {
		dialed <- to
		return net.Dial(network, address(s))
	})})
	if err := tgt.Deliver(t.Context(), target.Delivery{Address: subject}); err != nil {
		t.Fatal(err)
	}
	if to := <-dialed; to != "nats.internal:4222" {
		t.Errorf("it was asked for %s", to)
	}
}

type dialFunc func(network, address string) (net.Conn, error)

func (f dialFunc) Dial(network, address string) (net.Conn, error) { return f(network, address) }

func TestCloseWaitsForDeliveriesAndThenInterruptsThem(t *testing.T) {
	t.Parallel()
	s := startServer(t, nil)
	p := newProxy(t, address(s))
	tgt := newTarget(t, natstarget.Settings{URL: p.url()})
	if err := tgt.Deliver(t.Context(), target.Delivery{Address: subject}); err != nil {
		t.Fatal(err)
	}
	p.set(stall)
	tgt.SetGrace(200 * time.Millisecond)
	slow, hung := make(chan error, 1), make(chan error, 1)
	go func() {
		slow <- tgt.Deliver(t.Context(), target.Delivery{Address: "core.slow", Timeout: 50 * time.Millisecond})
	}()
	go func() { hung <- tgt.Deliver(t.Context(), target.Delivery{Address: "core.hung", Timeout: time.Hour}) }()
	failed(t, <-slow, "timeout after 50ms") // by then the other has begun, or fails as one that begins too late
	tgt.Close()
	if err := <-hung; err == nil {
		t.Error("a delivery that hung was delivered")
	}
	failed(t, tgt.Deliver(t.Context(), target.Delivery{Address: subject}), "the target is closed")
	tgt.Close()
}

func TestSettingsThatMakeNoSenseAreRefused(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		settings natstarget.Settings
		want     string
	}{
		"another scheme":                 {natstarget.Settings{URL: "http://canary:canary@h:1"}, "another scheme"},
		"the second of two":              {natstarget.Settings{URL: "nats://h:1,ftp://canary@h"}, "server 2: "},
		"no host":                        {natstarget.Settings{URL: "nats://:4222"}, "has no host"},
		"no URL":                         {natstarget.Settings{URL: "nats://u:canary%zz@h"}, "is no URL"},
		"a password alone":               {natstarget.Settings{Password: "canary"}, "without a user"},
		"two ways to log in":             {natstarget.Settings{User: "u", Password: "canary", CredentialsFile: "x"}, "one or the other"},
		"credentials that are not there": {natstarget.Settings{CredentialsFile: "/nowhere/user.creds"}, "credentials file: open /nowhere/user.creds"},
		"a negative timeout":             {natstarget.Settings{Timeout: -1}, "negative"},
		"a negative wait":                {natstarget.Settings{ConnectWait: -1}, "negative"},
		"an inbox that is none":          {natstarget.Settings{InboxPrefix: "a.>"}, "inbox prefix"},
	} {
		tgt, err := natstarget.New(tt.settings)
		if err == nil {
			tgt.Close()
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: the error is %v, want %q in it", name, err, tt.want)
		}
	}
}

func TestSettingsShowNoPasswordHoweverTheyAreWritten(t *testing.T) {
	t.Parallel()
	s := natstarget.Settings{URL: "nats://u:canary@a:4222, canary@b", User: "u", Password: "canary"}
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		fmt.Fprintf(&out, verb, s)
		fmt.Fprintf(&out, verb, []natstarget.Settings{s})
	}
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "settings", s)
	slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "settings", s)
	if text := out.String(); strings.Contains(text, "canary") || strings.Count(text, "NATS at a:4222, b") != 16 {
		t.Errorf("it reads:\n%s", text)
	}
}
