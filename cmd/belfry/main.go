// Command belfry delivers messages later: a server that accepts them, and commands that look at them and change them.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	_ "time/tzdata" // the timers API reads local times, and an empty image has no zone files

	"github.com/alecthomas/kong"
	"github.com/mattn/go-isatty"

	"github.com/belfryhq/belfry/cmd/belfry/internal/config"
)

//go:generate sh -c "go run . config --env >../../.env.example"

func main() {
	m := NewMain()
	os.Exit(m.Run(context.Background()))
}

// The exit codes.
const (
	exitOK      = 0
	exitFailure = 1 // it was tried and did not work, or doctor found a problem
	exitUsage   = 2 // the command line or a setting is wrong; nothing was tried
)

// Main is one run of the program. Tests make one with streams and an environment of their own.
type Main struct {
	Args     []string // without the program's name
	Environ  []string // "NAME=value" each
	Dir      string   // the folder that relative paths begin in; empty: the process's
	Stdin    io.Reader
	Stdout   io.Writer
	Stderr   io.Writer
	Terminal bool             // Stdout is a terminal: people read it
	Signals  <-chan os.Signal // each asks the program to stop; the second one to stop at once
}

// NewMain returns the run that the process was started for.
func NewMain() *Main {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	return &Main{
		Args:     os.Args[1:],
		Environ:  os.Environ(),
		Stdin:    os.Stdin,
		Stdout:   os.Stdout,
		Stderr:   os.Stderr,
		Terminal: isatty.IsTerminal(os.Stdout.Fd()),
		Signals:  signals,
	}
}

// Run does what the arguments ask for and returns the exit code.
func (m *Main) Run(ctx context.Context) int {
	err := m.run(ctx)
	var exit exitCode
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &exit):
		return int(exit)
	}
	_, _ = fmt.Fprintf(m.Stderr, "belfry: %s\n", err)
	var wrong *config.Error
	var parse *kong.ParseError
	if errors.As(err, &wrong) || errors.As(err, &parse) {
		return exitUsage
	}
	return exitFailure
}

// exitCode ends the program with a code when all has been said.
type exitCode int

// Error says which code.
func (e exitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// run parses the arguments, finds the settings and runs the command.
func (m *Main) run(ctx context.Context) error {
	sources, err := config.NewSources(m.Environ, m.path(config.DotEnv))
	if err != nil {
		return err
	}
	line, err := m.parse(sources)
	if err != nil {
		return err
	}
	line.BindTo(ctx, (*context.Context)(nil))
	return line.Run(m)
}

// parse reads the command line and the settings that the command has.
func (m *Main) parse(sources *config.Sources) (line *kong.Context, err error) {
	defer func() {
		if code, ok := recover().(exitCode); ok { // --help has been answered
			line, err = nil, code
		}
	}()
	resolver := config.NewResolver(sources)
	parser, err := kong.New(&commandLine{},
		kong.Name("belfry"),
		kong.Description("Delivers messages later: to HTTP endpoints and NATS subjects, exactly when they are due."),
		kong.Writers(m.Stdout, m.Stderr),
		kong.Exit(func(code int) { panic(exitCode(code)) }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 120}),
		kong.ValueFormatter(config.Help),
		kong.Resolvers(resolver),
		kong.WithBeforeResolve(func(line *kong.Context) error { return m.readConfig(line, sources, resolver) }),
	)
	if err != nil {
		return nil, err
	}
	args := m.Args
	if len(args) == 0 {
		args = []string{"--help"}
	}
	line, err = parser.Parse(args)
	if err != nil {
		return nil, plain(err)
	}
	values, err := resolver.Values(line)
	if err != nil {
		return nil, err
	}
	line.Bind(values, sources)
	return line, nil
}

// plain returns a setting's error alone where it names its place itself.
func plain(err error) error {
	var wrong *config.Error
	if errors.As(err, &wrong) && wrong.Name != "" {
		return wrong
	}
	return err
}

// defaultConfig is the configuration file that is read when none is named, if it is there.
const defaultConfig = "belfry.yaml"

// readConfig reads the configuration file before the settings are looked for.
func (m *Main) readConfig(line *kong.Context, sources *config.Sources, resolver *config.Resolver) error {
	path := ""
	for _, flag := range line.Flags() {
		if flag.Name == "config" {
			path, _ = line.FlagValue(flag).(string)
		}
	}
	if path == "" {
		path, _, _ = sources.Var("BELFRY_CONFIG")
	}
	if path == "" {
		if _, err := os.Stat(m.path(defaultConfig)); err != nil {
			return nil
		}
		path = defaultConfig
	}
	if err := sources.ReadFile(m.path(path)); err != nil {
		return err
	}
	return resolver.Bind(line.Model)
}

// path returns where a relative path leads.
func (m *Main) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(m.Dir, name)
}
