package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/belfryhq/belfry/cmd/belfry/internal/config"
)

// healthcheckCommand asks a server whether it is ready: what a container that has no curl is checked with.
type healthcheckCommand struct {
	Server config.Address `key:"server" placeholder:"URL" unset:"the one on this machine, by its port" help:"The server to ask."`

	listenSettings `embed:"" group:"Listen"`
}

// healthcheckWithin bounds the answer.
const healthcheckWithin = 5 * time.Second

// Run prints what the server says and fails when it is not ready.
func (c *healthcheckCommand) Run(ctx context.Context, m *Main) error {
	base := strings.TrimSuffix(string(c.Server), "/")
	if base == "" {
		host := string(c.Addr)
		if host == "" || host == "0.0.0.0" || host == "::" {
			host = "127.0.0.1"
		}
		base = "http://" + net.JoinHostPort(host, c.Port.String())
	}
	state, err := readiness(ctx, base)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintln(m.Stdout, state.Status)
	if state.Status != "ready" {
		return fmt.Errorf("%s is %s: %s", base, state.Status, strings.Join(state.Reasons, "; "))
	}
	return nil
}

// readyState is what /readyz answers.
type readyState struct {
	Status     string   `json:"status"`
	Reasons    []string `json:"reasons"`
	Store      string   `json:"store"`
	Durability string   `json:"durability"`
}

// readiness asks a server.
func readiness(ctx context.Context, base string) (readyState, error) {
	var state readyState
	ctx, cancel := context.WithTimeout(ctx, healthcheckWithin)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/readyz", nil)
	if err != nil {
		return state, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return state, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
	if err != nil {
		return state, err
	}
	if err := json.Unmarshal(text, &state); err != nil || state.Status == "" {
		return state, fmt.Errorf("%s answered %s; is it a Belfry server?", base, resp.Status)
	}
	return state, nil
}
