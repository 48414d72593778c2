package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"golang.org/x/net/netutil"
)

// The bounds on what a client can hold on to.
const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 30 * time.Second
	writeTimeout      = 60 * time.Second
	idleTimeout       = 60 * time.Second
	maxHeaderBytes    = 32 << 10
)

// Server answers HTTP on one address.
type Server struct {
	name     string
	server   *http.Server
	listener net.Listener
}

// Settings are those of a Server.
type Settings struct {
	Name           string // in the log
	Address        string // host:port
	Handler        http.Handler
	MaxConnections int // served at once; zero: any number
	Logger         *slog.Logger
	// Unbounded lifts the bound on how long an answer takes: for profiles.
	Unbounded bool
}

// Listen takes the address; Run then serves.
func Listen(ctx context.Context, s Settings) (*Server, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", s.Address)
	if err != nil {
		return nil, fmt.Errorf("listen for %s: %w", s.Name, err)
	}
	if s.MaxConnections > 0 {
		listener = netutil.LimitListener(listener, s.MaxConnections)
	}
	server := &http.Server{
		Handler:           s.Handler,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(s.Logger.Handler(), slog.LevelDebug),
	}
	if s.Unbounded {
		server.WriteTimeout = 0
	}
	return &Server{name: s.Name, server: server, listener: listener}, nil
}

// Addr returns the address that was taken.
func (s *Server) Addr() *net.TCPAddr {
	addr, _ := s.listener.Addr().(*net.TCPAddr)
	return addr
}

// Run serves until Shutdown or Close. It returns why it ended otherwise.
func (s *Server) Run() error {
	if err := s.server.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", s.name, err)
	}
	return nil
}

// Shutdown accepts no more connections and waits for the requests under way until ctx ends; then it cuts them off.
func (s *Server) Shutdown(ctx context.Context) {
	if err := s.server.Shutdown(ctx); err != nil {
		_ = s.server.Close()
	}
}

// Close ends the server at once. It may be called after Shutdown, and instead of Run.
func (s *Server) Close() error {
	return errors.Join(s.server.Close(), closeAgain(s.listener))
}

// closeAgain closes a listener that may be closed.
func closeAgain(l net.Listener) error {
	if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}
