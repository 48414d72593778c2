package testserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// readyWithin bounds how long a server may take to answer.
const readyWithin = 60 * time.Second

// Server is a throwaway server. Its methods are called by one goroutine at a time.
type Server struct {
	// URL is where it answers, with nothing but what it was made with in it.
	URL string
	// Port is its port on 127.0.0.1.
	Port int

	dir     string
	command func() *exec.Cmd                // a new one for each start
	ready   func(ctx context.Context) error // nil when it answers
	settled func()                          // waits after a kill until a start is possible; may be nil
	stop    syscall.Signal                  // asks for an orderly end; zero: SIGTERM
	process *process
}

// process is a run of a server.
type process struct {
	cmd   *exec.Cmd
	log   *tail
	ended chan struct{}
}

// Start starts the server, on the data and port that it has, and waits until it answers.
func (s *Server) Start() error {
	if s.process != nil {
		return errors.New("the server runs already")
	}
	p, err := start(s.command())
	if err != nil {
		return err
	}
	s.process = p
	if err := p.await(s.ready); err != nil {
		return errors.Join(err, s.Kill())
	}
	return nil
}

// start runs a command whose process does not outlive this one. The system binds that to the thread that forks, so a
// goroutine keeps its thread until the process has ended.
func start(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, log: &tail{}, ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = p.log, p.log
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	dieWithParent(cmd.SysProcAttr)
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // how it ended is not asked: it is killed, as a rule
			close(p.ended)
		}
	}()
	return p, <-started
}

// await asks until the server answers, or has ended.
func (p *process) await(ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), readyWithin)
	defer cancel()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.ended:
			return fmt.Errorf("%s ended: %s", p.cmd.Path, p.log)
		case <-ctx.Done():
			return fmt.Errorf("%s does not answer: %w; it says: %s", p.cmd.Path, err, p.log)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Kill ends the server with SIGKILL. What it has acknowledged and lost by that is its own affair.
func (s *Server) Kill() error {
	err := s.end(syscall.SIGKILL)
	if s.settled != nil {
		s.settled()
	}
	return err
}

// Stop ends the server in order.
func (s *Server) Stop() error {
	if s.stop != 0 {
		return s.end(s.stop)
	}
	return s.end(syscall.SIGTERM)
}

func (s *Server) end(signal syscall.Signal) error {
	if s.process == nil {
		return nil
	}
	err := s.process.cmd.Process.Signal(signal)
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	select {
	case <-s.process.ended:
	case <-time.After(10 * time.Second):
		err = errors.Join(err, s.process.cmd.Process.Kill())
		<-s.process.ended
	}
	s.process = nil
	return err
}

// Freeze stops the server's clockwork: connections stay, nothing answers. Thaw undoes it.
func (s *Server) Freeze() error { return s.process.cmd.Process.Signal(syscall.SIGSTOP) }

// Thaw lets a frozen server go on.
func (s *Server) Thaw() error { return s.process.cmd.Process.Signal(syscall.SIGCONT) }

// remove ends the server and its data.
func (s *Server) remove() {
	_ = s.Kill()
	_ = os.RemoveAll(s.dir)
}

// tail keeps the end of what a server prints.
type tail struct {
	mu   sync.Mutex
	text []byte
}

// Write keeps the last few lines.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	const most = 4 << 10
	t.text = append(t.text, p...)
	if len(t.text) > most {
		t.text = append([]byte(nil), t.text[len(t.text)-most:]...)
	}
	return len(p), nil
}

// String returns what is kept.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.text))
}

// freePort returns a port that nobody listens on.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// folder makes a temporary folder that other users can reach.
func folder(kind string) (string, error) {
	dir, err := os.MkdirTemp("", "belfry-"+kind+"-")
	if err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o755)
}
