package web

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// started returns a running server.
func started(t *testing.T, s Settings) *Server {
	t.Helper()
	s.Address = "127.0.0.1:0"
	s.Logger, _ = logged()
	server, err := Listen(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Run() }()
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return server
}

func ok(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }

// dial opens a connection.
func dial(t *testing.T, s *Server) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return conn
}

func TestLargeHeadersAreRefused(t *testing.T) {
	t.Parallel()
	s := started(t, Settings{Handler: http.HandlerFunc(ok)})
	conn := dial(t, s)
	go fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: x\r\nX: %s\r\n\r\n", strings.Repeat("x", 40<<10))
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("%d", resp.StatusCode)
	}
}

func TestAClientThatSendsNothingIsCutOff(t *testing.T) {
	t.Parallel()
	s := started(t, Settings{Handler: http.HandlerFunc(ok)})
	conn := dial(t, s)
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHo"); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if _, err := io.Copy(io.Discard, conn); err != nil {
		t.Fatalf("the connection was not closed: %v", err)
	}
	if took := time.Since(start); took < readHeaderTimeout-time.Second {
		t.Errorf("cut off after %v", took)
	}
}

func TestConnectionsBeyondTheBoundWait(t *testing.T) {
	t.Parallel()
	s := started(t, Settings{Handler: http.HandlerFunc(ok), MaxConnections: 1})
	first := dial(t, s)
	ask := func(conn net.Conn) string {
		if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(conn).ReadString('\n')
		if err != nil {
			return err.Error()
		}
		return line
	}
	if line := ask(first); !strings.Contains(line, "200") {
		t.Fatal(line)
	}
	second := dial(t, s)
	if err := second.SetReadDeadline(time.Now().Add(200 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if line := ask(second); !strings.Contains(line, "timeout") {
		t.Errorf("a second connection was answered: %s", line)
	}
	first.Close()
	if err := second.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(second).ReadString('\n'); err != nil || !strings.Contains(line, "200") {
		t.Errorf("after the first has gone: %q %v", line, err)
	}
}

func TestShutdownLetsRequestsFinish(t *testing.T) {
	t.Parallel()
	begun, finish := make(chan struct{}), make(chan struct{})
	s := started(t, Settings{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(begun)
		<-finish
		ok(w, r)
	})})
	answered := make(chan string, 1)
	go func() {
		resp, err := http.Get("http://" + s.Addr().String())
		if err != nil {
			answered <- err.Error()
			return
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		answered <- string(text)
	}()
	<-begun
	down := make(chan struct{})
	go func() {
		s.Shutdown(context.Background())
		close(down)
	}()
	close(finish)
	if text := <-answered; text != "ok" {
		t.Error(text)
	}
	<-down
}
