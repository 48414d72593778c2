package natstarget_test

import (
	"log/slog"
	"strconv"
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

// Short times after which a target asks about streams again.
const (
	soon  = 20 * time.Millisecond
	later = 200 * time.Millisecond
)

// sink delivers to the subject and fails the test unless that succeeds within a few seconds.
func sink(t *testing.T, tgt *natstarget.Target, id, subject string) {
	t.Helper()
	if err := tgt.Deliver(t.Context(), target.Delivery{ID: id, Address: subject, Timeout: 5 * time.Second}); err != nil {
		t.Errorf("%s: %v", id, err)
	}
}

func TestAStreamThatAppearsIsWaitedFor(t *testing.T) {
	t.Parallel()
	s := startServer(t, nil)
	conn := connect(t, s)
	tgt := newTarget(t, natstarget.Settings{URL: s.ClientURL()})
	tgt.Hasten(soon, later)
	sink(t, tgt, "before", subject)
	full := events
	full.MaxMsgs, full.Discard = 1, jetstream.DiscardNew
	stream := createStream(t, conn, full)
	deadline := time.Now().Add(10 * time.Second)
	for { // the stream takes one; the first that fails was waited for
		err := tgt.Deliver(t.Context(), target.Delivery{ID: time.Now().String(), Address: subject})
		if err != nil {
			failed(t, err, "JetStream: maximum messages exceeded (10077)")
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("deliveries still succeed")
		}
	}
	if n := count(t, stream); n != 1 {
		t.Errorf("the stream holds %d", n)
	}
}

func TestAStreamThatVanishesIsNotWaitedForAnyMore(t *testing.T) {
	t.Parallel()
	for _, subscribers := range []string{"without subscribers", "with a subscriber"} {
		t.Run(subscribers, func(t *testing.T) {
			t.Parallel()
			s := startServer(t, nil)
			conn := connect(t, s)
			createStream(t, conn, events)
			tgt := newTarget(t, natstarget.Settings{URL: s.ClientURL()})
			tgt.Hasten(time.Hour, later)
			sink(t, tgt, "before", subject)
			js, err := jetstream.New(conn)
			if err != nil {
				t.Fatal(err)
			}
			if err := js.DeleteStream(t.Context(), events.Name); err != nil {
				t.Fatal(err)
			}
			if subscribers == "without subscribers" {
				sink(t, tgt, "after", subject)
				return
			}
			sub := subscribed(t, conn, subject)
			sink(t, tgt, "after", subject)
			sink(t, tgt, "last", subject)
			for _, id := range []string{"after", "last"} {
				if got := next(t, sub).Header.Get("Nats-Msg-Id"); !strings.Contains(got, "/"+id+"/") {
					t.Errorf("%q arrived, want %s", got, id)
				}
			}
		})
	}
}

func TestAStreamThatDoesNotAcknowledgeIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	s := startServer(t, nil)
	silent := events
	silent.NoAck = true
	stream := createStream(t, connect(t, s), silent)
	tgt := newTarget(t, natstarget.Settings{URL: s.ClientURL()})
	tgt.Hasten(time.Hour, time.Hour)
	sink(t, tgt, "m", subject)
	deadline := time.Now().Add(5 * time.Second)
	for count(t, stream) != 1 {
		if time.Now().After(deadline) {
			t.Fatal("the stream did not receive it")
		}
	}
}

func TestAStreamWhoseAcknowledgementIsLateIsWaitedForOn(t *testing.T) {
	t.Parallel()
	s := startServer(t, nil)
	createStream(t, connect(t, s), events)
	p := newProxy(t, address(s))
	tgt := newTarget(t, natstarget.Settings{URL: p.url()})
	tgt.Hasten(time.Hour, soon)
	sink(t, tgt, "before", subject)
	p.set(stall)
	defer time.AfterFunc(later, func() { p.set(forward) }).Stop()
	sink(t, tgt, "slow", subject)
}

func TestWithoutJetStreamMessagesArePublished(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*server.Options){
		"on the server": func(o *server.Options) { o.JetStream = false },
		"for the account": func(o *server.Options) {
			account := server.NewAccount("PLAIN")
			o.Accounts = []*server.Account{account}
			o.Users = []*server.User{{Username: "belfry", Password: "secret", Account: account}}
		},
		"without headers": func(o *server.Options) { o.JetStream, o.NoHeaderSupport = false, true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startServer(t, change)
			own := natstarget.Settings{URL: "nats://" + address(s)}
			var login []nats.Option
			if name == "for the account" {
				own.User, own.Password = "belfry", "secret"
				login = append(login, nats.UserInfo("belfry", "secret"))
			}
			conn, err := nats.Connect(own.URL, login...)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			sub := subscribed(t, conn, subject)
			tgt := newTarget(t, own)
			start := time.Now()
			for range 3 {
				sink(t, tgt, "m", subject)
				next(t, sub)
			}
			if took := time.Since(start); took > 4*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

func TestAHeaderIsAFailureWhereThereAreNone(t *testing.T) {
	t.Parallel()
	s := startServer(t, func(o *server.Options) { o.JetStream, o.NoHeaderSupport = false, true })
	tgt := newTarget(t, natstarget.Settings{URL: s.ClientURL()})
	d := target.Delivery{Address: subject, Headers: map[string]string{"X": "1"}}
	failed(t, tgt.Deliver(t.Context(), d), "headers not supported by this server")
}

func TestWhatIsNotPermittedIsToldOrDoneWithout(t *testing.T) {
	t.Parallel()
	allow := func(subjects ...string) *server.SubjectPermission { return &server.SubjectPermission{Allow: subjects} }
	for name, tt := range map[string]struct {
		permissions server.Permissions
		to          string
		want        string // empty: it is delivered
	}{
		"publishing":                     {server.Permissions{Publish: allow("other.>", "$JS.API.>")}, "core.timer", "NATS does not permit publishing to the subject"},
		"publishing, and asking":         {server.Permissions{Publish: allow("other.>")}, "core.timer", "NATS does not permit publishing to the subject"},
		"publishing to a stream":         {server.Permissions{Publish: allow("other.>", "$JS.API.>")}, subject, "NATS does not permit publishing to the subject"},
		"asking for streams":             {server.Permissions{Publish: allow("core.>", "events.>")}, "core.timer", ""},
		"asking for streams on it":       {server.Permissions{Publish: allow("core.>", "events.>")}, subject, ""},
		"asking about one stream":        {server.Permissions{Publish: allow("events.>", "$JS.API.STREAM.NAMES")}, subject, ""},
		"receiving answers":              {server.Permissions{Subscribe: allow("nothing")}, "core.timer", ""},
		"receiving answers for a stream": {server.Permissions{Subscribe: allow("nothing")}, subject, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log := &journal{}
			s := startServer(t, func(o *server.Options) {
				o.Users = []*server.User{{Username: "admin", Password: "a"}, {Username: "belfry", Password: "b", Permissions: &tt.permissions}}
			})
			admin, err := nats.Connect(s.ClientURL(), nats.UserInfo("admin", "a"))
			if err != nil {
				t.Fatal(err)
			}
			defer admin.Close()
			createStream(t, admin, events)
			sub := subscribed(t, admin, tt.to)
			tgt := newTarget(t, natstarget.Settings{URL: s.ClientURL(), User: "belfry", Password: "b", Logger: slog.New(slog.NewTextHandler(log, nil))})
			for range 3 {
				start := time.Now()
				err := tgt.Deliver(t.Context(), target.Delivery{Address: tt.to})
				if took := time.Since(start); took > time.Second {
					t.Errorf("it took %v", took)
				}
				if tt.want != "" {
					failed(t, err, tt.want)
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				next(t, sub)
			}
			if n := strings.Count(log.String(), "may not be asked"); n > 1 {
				t.Errorf("the log says so %d times:\n%s", n, log)
			}
		})
	}
}

func TestOfManyDenialsAtOnceEachIsHeard(t *testing.T) {
	t.Parallel()
	s := startServer(t, func(o *server.Options) {
		o.JetStream = false
		permitted := &server.Permissions{Publish: &server.SubjectPermission{Allow: []string{"core.>", "$JS.>"}}}
		o.Users = []*server.User{{Username: "belfry", Password: "b", Permissions: permitted}}
	})
	tgt := newTarget(t, natstarget.Settings{URL: s.ClientURL(), User: "belfry", Password: "b"})
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			if i%4 == 0 {
				sink(t, tgt, "permitted", "core."+strconv.Itoa(i))
				return
			}
			err := tgt.Deliver(t.Context(), target.Delivery{Address: "other." + strconv.Itoa(i)})
			failed(t, err, "NATS does not permit publishing to the subject")
		})
	}
	all.Wait()
}

func TestManyWhoCannotReceiveAnswersWaitForNone(t *testing.T) {
	t.Parallel()
	s := startServer(t, func(o *server.Options) {
		permitted := &server.Permissions{Subscribe: &server.SubjectPermission{Allow: []string{"nothing"}}}
		o.Users = []*server.User{{Username: "belfry", Password: "b", Permissions: permitted}}
	})
	tgt := newTarget(t, natstarget.Settings{URL: s.ClientURL(), User: "belfry", Password: "b"})
	var all sync.WaitGroup
	start := time.Now()
	for i := range 200 {
		all.Go(func() { sink(t, tgt, "m", "core."+strconv.Itoa(i)) })
	}
	all.Wait()
	if took := time.Since(start); took > 1500*time.Millisecond {
		t.Errorf("they took %v", took)
	}
}

func TestAnAnswerFromAnotherThanTheStreamIsAFailure(t *testing.T) {
	t.Parallel()
	s := startServer(t, nil)
	conn := connect(t, s)
	createStream(t, conn, events)
	if _, err := conn.Subscribe(subject, func(m *nats.Msg) { _ = m.Respond([]byte("me first")) }); err != nil {
		t.Fatal(err)
	}
	tgt := newTarget(t, natstarget.Settings{URL: s.ClientURL()})
	for range 20 { // who is first is not certain
		err := tgt.Deliver(t.Context(), target.Delivery{Address: subject})
		if err != nil {
			failed(t, err, "what answered first was not the stream on the subject")
			return
		}
	}
}

func TestASilentJetStreamLetsNoMessagePassByAStream(t *testing.T) {
	t.Parallel()
	s := startServer(t, nil)
	createStream(t, connect(t, s), events)
	tgt := newTarget(t, natstarget.Settings{URL: s.ClientURL()})
	tgt.Hasten(soon, later)
	sink(t, tgt, "known", subject)
	if err := s.DisableJetStream(); err != nil {
		t.Fatal(err)
	}
	err := tgt.Deliver(t.Context(), target.Delivery{Address: "events.unknown"})
	if verdict, _, _ := target.Judge(err); verdict != target.Retry || !strings.HasPrefix(err.Error(), "JetStream does not tell whether a stream listens: ") {
		t.Errorf("a subject not asked for before: %v", err)
	}
	failed(t, tgt.Deliver(t.Context(), target.Delivery{Address: subject}), "the stream on the subject does not answer")
}
