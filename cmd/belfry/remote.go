package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/belfryhq/belfry"
	"github.com/belfryhq/belfry/api/auth"
	v1 "github.com/belfryhq/belfry/api/v1"
	"github.com/belfryhq/belfry/cmd/belfry/internal/config"
	"github.com/belfryhq/belfry/cmd/belfry/internal/control"
	"github.com/belfryhq/belfry/cmd/belfry/internal/web"
)

// messagesCommand is what the commands share that look at messages or change them. They speak /api/v1: to the server they
// are told, else to the one that has the store open, else, when none runs, to the same handler on the store itself.
type messagesCommand struct {
	JSON bool `name:"json" help:"Print JSON; without it that is so when the output is no terminal."`

	remoteSettings  `embed:"" group:"Server"`
	storeSettings   `embed:"" group:"Store, when there is no server"`
	observeSettings `embed:"" group:"Logs"`
}

// remote is whoever answers /api/v1.
type remote struct {
	base  string
	key   string
	http  *http.Client
	close func() error
}

// answerWithin bounds one request.
const answerWithin = 30 * time.Second

// reading and writing say whether a command may begin a store that is not there yet.
const (
	reading = false
	writing = true
)

// dial finds whoever answers.
func (c *messagesCommand) dial(ctx context.Context, m *Main, values config.Values, begin bool) (*remote, error) {
	if c.Server != "" {
		return c.dialServer(values)
	}
	address, place, err := c.storeURL(values)
	if err != nil {
		return nil, err
	}
	u, adapter, err := parseStoreURL(address)
	if err != nil {
		return nil, at(place, err)
	}
	if u.scheme == "memory" {
		return nil, at(place, &config.Error{Value: address.Mask(), Remedy: "a memory store is gone with its server; give --server, the URL of one that runs"})
	}
	if adapter.file != nil {
		file, err := adapter.file(m, u)
		if err != nil {
			return nil, at(place, err)
		}
		if r, err := dialHolder(ctx, file); r != nil || err != nil {
			return r, err
		}
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) && !begin {
			return nil, fmt.Errorf("there is no store %s; name one with --store, or a server with --server", file)
		}
	}
	return c.openStore(ctx, m, values)
}

// dialHolder returns the server that has a file open; nil: none has.
func dialHolder(ctx context.Context, file string) (*remote, error) {
	server, err := control.Find(file)
	if err != nil || server == nil {
		return nil, err
	}
	r := &remote{base: server.URL, key: server.Key, http: newClient()}
	if !r.answers(ctx) {
		return nil, nil
	}
	return r, nil
}

// dialServer returns the server that --server names.
func (c *messagesCommand) dialServer(values config.Values) (*remote, error) {
	u, err := url.Parse(string(c.Server))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, values.Wrong("server", c.Server.Mask(), "give the URL of a server, such as http://localhost:8080")
	}
	if c.Key.IsZero() {
		return nil, values.Wrong("key", "", "not set; set BELFRY_KEY or API_KEY to one of the server's API keys")
	}
	return &remote{base: strings.TrimSuffix(string(c.Server), "/"), key: c.Key.Reveal(), http: newClient()}, nil
}

// newClient returns what asks servers. It follows no redirect: the API has none, and the key would go along to another host.
func newClient() *http.Client {
	return &http.Client{
		Timeout:       answerWithin,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// answers reports whether a server is there.
func (r *remote) answers(ctx context.Context) bool {
	err := r.do(ctx, http.MethodGet, "/api/v1/messages?limit=1&queue=none", nil, nil)
	var refused *net.OpError
	return !errors.As(err, &refused) || refused.Op != "dial"
}

// openStore opens the store and answers from it, in this process, for as long as the command runs.
func (c *messagesCommand) openStore(ctx context.Context, m *Main, values config.Values) (*remote, error) {
	logger := m.logger(max(c.LogLevel, config.Level(8)), c.LogFormat)
	opened, err := c.storeSettings.open(ctx, m, values)
	if err != nil {
		return nil, err
	}
	key := strings.Repeat("k", auth.MinKey) // nobody else can reach the handler
	keys, err := auth.Parse("this process:" + key)
	if err != nil {
		return nil, errors.Join(err, opened.Close())
	}
	client := belfry.New(opened, belfry.Settings{Logger: logger})
	handler := v1.New(client, v1.Settings{Keys: keys, Targets: checkers(), Logger: logger})
	return &remote{
		base: "http://store", key: key, http: &http.Client{Transport: web.Direct(handler)},
		close: func() error {
			client.Close()
			return opened.Close()
		},
	}, nil
}

// Close gives back what dial took.
func (r *remote) Close() error {
	if r.close == nil {
		r.http.CloseIdleConnections()
		return nil
	}
	return r.close()
}

// problem is an answer that is an error.
type problem struct {
	Status int    `json:"status"`
	Detail string `json:"detail"`
}

// Error returns what the server says.
func (p *problem) Error() string { return p.Detail }

// do makes a request; in and out are JSON, each may be nil.
func (r *remote) do(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, r.base+path, body)
	if err != nil {
		return err
	}
	req.Header.Set("X-API-Key", r.key)
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := r.http.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("read the answer of %s: %w", config.Address(r.base).Mask(), err)
	}
	return decodeAnswer(resp.StatusCode, text, out, config.Address(r.base).Mask())
}

// decodeAnswer reads what came back.
func decodeAnswer(status int, text []byte, out any, base string) error {
	if status < http.StatusMultipleChoices {
		if out == nil || len(text) == 0 {
			return nil
		}
		if err := json.Unmarshal(text, out); err != nil {
			return fmt.Errorf("%s answered what is no Belfry's answer: %w", base, err)
		}
		return nil
	}
	p := &problem{Status: status}
	if err := json.Unmarshal(text, p); err != nil || p.Detail == "" {
		return fmt.Errorf("%s answered %d %s; is it a Belfry server?", base, status, http.StatusText(status))
	}
	if status == http.StatusUnauthorized {
		p.Detail = fmt.Sprintf("%s does not know this API key; set BELFRY_KEY or API_KEY to one of its keys", base)
	}
	return p
}

// messagePath returns the path of a message.
func messagePath(queue, id string) string {
	return "/api/v1/messages/" + url.PathEscape(queue) + "/" + url.PathEscape(id)
}
