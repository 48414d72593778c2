package natstarget_test

import (
	"net"
	"sync"
	"testing"
)

// mode is how a proxy treats connections.
type mode uint8

const (
	forward mode = iota
	stall        // what comes is not passed on
	deaf         // what the server says is swallowed
	cut          // the connection ends when the client sends something; the next is forwarded
	refuse       // connections end, new ones at once
)

// proxy stands between a client and a server.
type proxy struct {
	listener net.Listener
	served   sync.WaitGroup

	mu    sync.Mutex
	to    string // the server
	mode  mode
	moved chan struct{}     // closed when the mode changes
	conns map[net.Conn]bool // whether it is a client
}

// newProxy returns a proxy to the server that ends with the test.
func newProxy(t testing.TB, server string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, to: server, moved: make(chan struct{}), conns: make(map[net.Conn]bool)}
	p.served.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

func (p *proxy) url() string { return "nats://" + p.listener.Addr().String() }

// redirect names another server for connections to come.
func (p *proxy) redirect(server string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.to = server
}

func (p *proxy) server() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.to
}

// set changes the mode. Connections that there are end if they are refused.
func (p *proxy) set(m mode) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mode = m
	close(p.moved)
	p.moved = make(chan struct{})
	if m == refuse {
		p.drop()
	}
}

// is reports whether the proxy is in the mode.
func (p *proxy) is(m mode) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mode == m
}

// say sends the text to all clients, as if the server had.
func (p *proxy) say(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c, client := range p.conns {
		if client {
			_, _ = c.Write([]byte(text))
		}
	}
}

// drop ends all connections. The lock is held.
func (p *proxy) drop() {
	for c := range p.conns {
		c.Close()
	}
}

func (p *proxy) close() {
	p.listener.Close()
	p.set(refuse)
	p.served.Wait()
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.served.Go(func() { p.serve(client) })
	}
}

// keep notes a connection so that it can be ended, and reports whether it may be.
func (p *proxy) keep(c net.Conn, client bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns[c] = client
	return p.mode != refuse
}

func (p *proxy) forget(c net.Conn) {
	c.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

func (p *proxy) serve(client net.Conn) {
	defer p.forget(client)
	if !p.keep(client, true) {
		return
	}
	server, err := net.Dial("tcp", p.server())
	if err != nil {
		return
	}
	defer p.forget(server)
	p.keep(server, false)
	var both sync.WaitGroup
	both.Go(func() { p.pass(server, client, true) })
	both.Go(func() { p.pass(client, server, false) })
	both.Wait()
}

// pass copies from one side to the other as long as the mode lets it.
func (p *proxy) pass(to, from net.Conn, fromClient bool) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil || !p.admit(fromClient) {
			return
		}
		if !fromClient && p.is(deaf) {
			continue
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

// admit waits while the mode is stall and reports whether what was read may be passed on.
func (p *proxy) admit(fromClient bool) bool {
	for {
		p.mu.Lock()
		m, moved := p.mode, p.moved
		if m == cut && fromClient {
			p.mode = forward
			p.mu.Unlock()
			return false
		}
		p.mu.Unlock()
		if m != stall {
			return m != refuse
		}
		<-moved
	}
}
