package httptarget_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/belfryhq/belfry/target"
	"github.com/belfryhq/belfry/target/httptarget"
)

// names is a name server whose answers to each question change from one to the next.
type names struct {
	mu      sync.Mutex
	answers [][]string
}

// newNames returns a resolver that answers with each list of addresses in turn, and with the last ever after.
func newNames(t *testing.T, answers ...[]string) *net.Resolver {
	t.Helper()
	n := &names{answers: answers}
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var served sync.WaitGroup
	served.Go(func() { n.serve(conn) })
	t.Cleanup(func() { conn.Close(); served.Wait() })
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

func (n *names) serve(conn net.PacketConn) {
	buf := make([]byte, 1500)
	for {
		size, from, err := conn.ReadFrom(buf)
		if err != nil {
			return
		}
		var question dnsmessage.Message
		if question.Unpack(buf[:size]) != nil || len(question.Questions) != 1 {
			continue
		}
		reply := n.reply(question)
		packed, err := reply.Pack()
		if err == nil {
			_, _ = conn.WriteTo(packed, from)
		}
	}
}

// reply answers a question for IPv4 addresses; there are no others.
func (n *names) reply(m dnsmessage.Message) dnsmessage.Message {
	q := m.Questions[0]
	m.Response, m.Authoritative, m.Additionals = true, true, nil
	if q.Type != dnsmessage.TypeA {
		return m
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, addr := range n.answers[0] {
		m.Answers = append(m.Answers, dnsmessage.Resource{
			Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class},
			Body:   &dnsmessage.AResource{A: netip.MustParseAddr(addr).As4()},
		})
	}
	if len(n.answers) > 1 {
		n.answers = n.answers[1:]
	}
	return m
}

// counted is a server on all loopback addresses that counts requests.
func counted(t *testing.T) (port string, requests *atomic.Int32) {
	t.Helper()
	requests = new(atomic.Int32)
	l, err := net.Listen("tcp4", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		w.Header().Set("Connection", "close")
	}))
	s.Listener.Close()
	s.Listener = l
	s.Start()
	t.Cleanup(s.Close)
	_, port, _ = net.SplitHostPort(l.Addr().String())
	return port, requests
}

// needAliases skips a test that needs more than one loopback address, where the system has but one.
func needAliases(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.2:0")
	if err != nil {
		t.Skipf("127.0.0.2 is not on this system: %v", err)
	}
	l.Close()
}

// blocked fails the test unless the error is final and names the setting.
func blocked(t *testing.T, err error, address string) {
	t.Helper()
	want := "address " + address + " is not allowed: see BELFRY_EGRESS_ALLOW"
	if verdict, _, _ := target.Judge(err); verdict != target.Bury || err.Error() != want {
		t.Errorf("the error is %v (verdict %d), want %q for good", err, verdict, want)
	}
}

func TestANameThatTurnsToAnotherAddressIsCheckedAgain(t *testing.T) {
	t.Parallel()
	needAliases(t)
	port, requests := counted(t)
	tgt := newTarget(t, httptarget.Settings{
		Allow:    []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")},
		Resolver: newNames(t, []string{"127.0.0.2"}, []string{"127.0.0.1"}),
	})
	d := target.Delivery{Address: "http://rebind.example.:" + port + "/"}
	if err := tgt.Deliver(t.Context(), d); err != nil {
		t.Fatalf("the allowed address: %v", err)
	}
	blocked(t, tgt.Deliver(t.Context(), d), "127.0.0.1")
	if n := requests.Load(); n != 1 {
		t.Errorf("%d requests arrived, want the first alone", n)
	}
}

func TestOfSeveralAddressesOnlyAllowedOnesAreReached(t *testing.T) {
	t.Parallel()
	needAliases(t)
	port, requests := counted(t)
	tgt := newTarget(t, httptarget.Settings{
		Allow:    []netip.Prefix{netip.MustParsePrefix("127.0.0.3/32")},
		Resolver: newNames(t, []string{"127.0.0.1", "10.0.0.1", "127.0.0.3"}, []string{"127.0.0.1", "127.0.0.1"}),
	})
	d := target.Delivery{Address: "http://several.example.:" + port + "/"}
	if err := tgt.Deliver(t.Context(), d); err != nil {
		t.Errorf("with one that is allowed: %v", err)
	}
	blocked(t, tgt.Deliver(t.Context(), d), "127.0.0.1")
	if n := requests.Load(); n != 1 {
		t.Errorf("%d requests arrived, want 1", n)
	}
}

func TestAHostOfWhichAnAllowedAddressIsDownIsTriedAgain(t *testing.T) {
	t.Parallel()
	needAliases(t)
	tgt := newTarget(t, httptarget.Settings{
		Allow:    []netip.Prefix{netip.MustParsePrefix("127.0.0.3/32")},
		Resolver: newNames(t, []string{"127.0.0.1", "127.0.0.3"}),
	})
	err := tgt.Deliver(t.Context(), target.Delivery{Address: "http://down.example.:1/"})
	if verdict, _, _ := target.Judge(err); verdict != target.Retry || err.Error() != "connection failed" {
		t.Errorf("the error is %v (verdict %d), want a plain one", err, verdict)
	}
}

func TestHoweverAHostIsWrittenItsAddressIsChecked(t *testing.T) {
	t.Parallel()
	port, requests := counted(t)
	tgt := newTarget(t, httptarget.Settings{Resolver: newNames(t, []string{"127.0.0.1"})})
	for _, host := range []string{
		"127.0.0.1", "127.0.0.1.", "localhost", "LOCALHOST", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:ffff:127.0.0.1]",
		"①②⑦.⓪.⓪.①", "127。0。0。1", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "0x7f.1", "0.0.0.0", "0", "[::]",
		"169.254.169.254", "[fd00:ec2::254]", "user@127.0.0.1", "8.8.8.8@127.0.0.1", "[fe80::1%25lo]", "%31%32%37.0.0.1",
	} {
		err := tgt.Deliver(t.Context(), target.Delivery{Address: "http://" + host + ":" + port + "/"})
		if err == nil {
			t.Errorf("%s was reached", host)
		} else if verdict, _, _ := target.Judge(err); verdict != target.Bury && !strings.Contains(err.Error(), "no such host") {
			t.Errorf("%s: %v, want a final error", host, err)
		}
	}
	if n := requests.Load(); n != 0 {
		t.Errorf("%d requests arrived", n)
	}
}

func TestARedirectIsNotFollowed(t *testing.T) {
	t.Parallel()
	port, requests := counted(t)
	s := httptest.NewServer(http.RedirectHandler("http://127.0.0.2:"+port+"/", http.StatusTemporaryRedirect))
	t.Cleanup(s.Close)
	err := newTarget(t, httptarget.Settings{AllowPrivate: true}).Deliver(t.Context(), target.Delivery{Address: s.URL})
	if err == nil || err.Error() != "HTTP 307" {
		t.Errorf("the error is %v, want HTTP 307", err)
	}
	if n := requests.Load(); n != 0 {
		t.Errorf("%d requests followed", n)
	}
}

func TestAHostThatDoesNotExistIsSaidToBeNone(t *testing.T) {
	t.Parallel()
	tgt := newTarget(t, httptarget.Settings{Resolver: newNames(t, nil)})
	err := tgt.Deliver(t.Context(), target.Delivery{Address: "http://none.example./"})
	if verdict, _, _ := target.Judge(err); verdict != target.Retry || err.Error() != "no such host" {
		t.Errorf("the error is %v (verdict %d)", err, verdict)
	}
}

func TestProxiesOfTheEnvironmentAreIgnored(t *testing.T) {
	port, proxied := counted(t)
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"} {
		t.Setenv(name, "http://127.0.0.1:"+port)
	}
	tgt := newTarget(t, httptarget.Settings{})
	blocked(t, tgt.Deliver(t.Context(), target.Delivery{Address: "http://169.254.169.254/latest/meta-data/"}), "169.254.169.254")
	if n := proxied.Load(); n != 0 {
		t.Errorf("the proxy had %d requests", n)
	}
}

func TestAConfiguredProxyIsUsedAndDecides(t *testing.T) {
	t.Parallel()
	var asked atomic.Value
	proxy := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked.Store(r.URL.String()) }))
	t.Cleanup(proxy.Close)
	tgt := newTarget(t, httptarget.Settings{Proxy: parse(t, proxy.URL)})
	if err := tgt.Deliver(t.Context(), target.Delivery{Address: "http://169.254.169.254/x"}); err != nil {
		t.Fatal(err)
	}
	if asked.Load() != "http://169.254.169.254/x" {
		t.Errorf("the proxy was asked for %v", asked.Load())
	}
}
