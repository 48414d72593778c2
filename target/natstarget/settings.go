package natstarget

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// The defaults of Settings.
const (
	DefaultURL         = "nats://127.0.0.1:4222"
	DefaultName        = "belfry"
	DefaultTimeout     = 30 * time.Second
	DefaultConnectWait = 2 * time.Second
)

// Settings are what a Target is made of. The zero value works with a server on this machine.
type Settings struct {
	// URL is one server or several, separated by commas; user info in it logs in. Empty: DefaultURL.
	URL string
	// User and Password log in where the URL does not. CredentialsFile is a file with a JWT and its seed.
	User            string
	Password        string
	CredentialsFile string
	// Name is what the server knows the connection by. Empty: DefaultName.
	Name string

	// Timeout bounds a delivery unless the message has a bound of its own. Zero: DefaultTimeout.
	Timeout time.Duration
	// ConnectWait is how long a delivery waits for a connection. Zero: DefaultConnectWait.
	ConnectWait time.Duration

	// AllowControl lets messages be published to the subjects by which NATS itself is controlled, $JS. and $SYS.: whoever
	// may schedule a message can then delete streams.
	AllowControl bool

	// TLSConfig is for tls:// servers. Nil: the system's certificate authorities. Verification cannot be turned off.
	TLSConfig *tls.Config
	// Dialer makes the connections. Nil: as usual; no address is refused, since the operator names the servers.
	Dialer nats.CustomDialer
	// IgnoreDiscovered keeps to the servers of URL, whatever others they tell of.
	IgnoreDiscovered bool
	// InboxPrefix is where answers are received, for users that may not subscribe to _INBOX.>. Empty: _INBOX.
	InboxPrefix string

	// Logger is told when the connection comes and goes. Nil: slog's default.
	Logger *slog.Logger
}

// Format writes where the servers are, whatever the verb, and no password.
func (s Settings) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(s.public())) }

// LogValue returns where the servers are, and no password.
func (s Settings) LogValue() slog.Value { return slog.StringValue(s.public()) }

// public returns the hosts of the servers.
func (s Settings) public() string {
	var hosts []string
	for raw := range strings.SplitSeq(s.URL, ",") {
		_, server, ok := strings.Cut(raw, "://")
		if !ok {
			server = raw
		}
		hosts = append(hosts, strings.TrimSpace(server[strings.LastIndexByte(server, '@')+1:]))
	}
	return "NATS at " + strings.Join(hosts, ", ")
}

// withDefaults returns complete settings, or an error that names what is wrong with them. It tells no password.
func (s Settings) withDefaults() (Settings, error) {
	if s.URL == "" {
		s.URL = DefaultURL
	}
	if s.Name == "" {
		s.Name = DefaultName
	}
	if s.Timeout == 0 {
		s.Timeout = DefaultTimeout
	}
	if s.ConnectWait == 0 {
		s.ConnectWait = DefaultConnectWait
	}
	if s.Logger == nil {
		s.Logger = slog.Default()
	}
	if err := s.check(); err != nil {
		return Settings{}, fmt.Errorf("natstarget: %w", err)
	}
	return s, nil
}

func (s Settings) check() error {
	if s.Timeout < 0 || s.ConnectWait < 0 {
		return fmt.Errorf("timeout %v, connect wait %v: neither may be negative", s.Timeout, s.ConnectWait)
	}
	if s.TLSConfig != nil && s.TLSConfig.InsecureSkipVerify {
		return errors.New("TLS: verification cannot be turned off; trust the server's authority with RootCAs")
	}
	if s.User == "" && s.Password != "" {
		return errors.New("password: is set without a user; set both")
	}
	if s.User != "" && s.CredentialsFile != "" {
		return errors.New("user and credentials file: set one or the other")
	}
	if s.CredentialsFile != "" {
		f, err := os.Open(s.CredentialsFile)
		if err != nil {
			return fmt.Errorf("credentials file: %w", err)
		}
		f.Close()
	}
	if s.InboxPrefix != "" && checkSubject(s.InboxPrefix) != nil {
		return fmt.Errorf("inbox prefix %q: is no subject", s.InboxPrefix)
	}
	for i, raw := range strings.Split(s.URL, ",") {
		if err := checkServer(strings.TrimSpace(raw)); err != nil {
			return fmt.Errorf("server %d: %w", i+1, err)
		}
	}
	return nil
}

// checkServer returns nil if the text names a server. The error does not repeat it: it may hold a password.
func checkServer(raw string) error {
	if !strings.Contains(raw, "://") {
		raw = "nats://" + raw
	}
	u, err := url.Parse(raw)
	if err != nil {
		return errors.New("is no URL; give one like nats://host:4222, with special characters percent-encoded")
	}
	switch u.Scheme {
	case "nats", "tls", "ws", "wss":
	default:
		return errors.New("has another scheme than nats, tls, ws or wss")
	}
	if u.Hostname() == "" {
		return errors.New("has no host; give one like nats://host:4222")
	}
	return nil
}

// Bounds of one connection.
const (
	dialTimeout  = 5 * time.Second
	pingInterval = 15 * time.Second // two that go unanswered end the connection
	writeTimeout = 5 * time.Second  // the client's locks are held while it writes
)

// options returns the client's options, but for its handlers.
func (s Settings) options(dialer nats.CustomDialer) []nats.Option {
	opts := []nats.Option{
		nats.Name(s.Name),
		nats.Timeout(dialTimeout),
		nats.PingInterval(pingInterval),
		nats.MaxPingsOutstanding(2),
		nats.FlusherTimeout(writeTimeout),
		nats.ReconnectOnFlusherError(),
		nats.RetryOnFailedConnect(true),
		nats.MaxReconnects(-1),
		nats.CustomReconnectDelay(backoff),
		nats.ReconnectBufSize(-1), // what cannot be sent now is a failed attempt
		nats.SetCustomDialer(dialer),
		nats.SkipHostLookup(), // the dialer looks names up, and can be interrupted
	}
	if s.User != "" {
		opts = append(opts, nats.UserInfo(s.User, s.Password))
	}
	if s.CredentialsFile != "" {
		opts = append(opts, nats.UserCredentials(s.CredentialsFile))
	}
	if s.TLSConfig != nil {
		opts = append(opts, nats.Secure(s.TLSConfig.Clone()))
	}
	if s.IgnoreDiscovered {
		opts = append(opts, nats.IgnoreDiscoveredServers())
	}
	if s.InboxPrefix != "" {
		opts = append(opts, nats.CustomInboxPrefix(s.InboxPrefix))
	}
	return opts
}
