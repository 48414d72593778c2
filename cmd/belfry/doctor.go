package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/belfryhq/belfry"
	"github.com/belfryhq/belfry/cmd/belfry/internal/config"
	"github.com/belfryhq/belfry/cmd/belfry/internal/control"
	"github.com/belfryhq/belfry/store"
)

// doctorCommand finds out what is wrong.
type doctorCommand struct {
	JSON bool `name:"json" help:"Print JSON; without it that is so when the output is no terminal."`

	serveSettings `embed:""`
}

// finding is what one check came to.
type finding struct {
	Check  string `json:"check"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
}

// doctor collects findings.
type doctor struct {
	*doctorCommand
	main     *Main
	values   config.Values
	findings []finding
}

// checkWithin bounds one check.
const checkWithin = 5 * time.Second

// Run makes all checks, prints them, and ends with the exit code 1 if there is a problem.
func (c *doctorCommand) Run(ctx context.Context, m *Main, values config.Values) error {
	d := &doctor{doctorCommand: c, main: m, values: values}
	d.checkKeys()
	d.checkStore(ctx)
	d.checkNATS(ctx)
	if err := d.print(); err != nil {
		return err
	}
	for _, f := range d.findings {
		if !f.OK {
			return exitCode(exitFailure)
		}
	}
	return nil
}

func (d *doctor) add(check string, err error, format string, args ...any) {
	f := finding{Check: check, OK: err == nil, Detail: fmt.Sprintf(format, args...)}
	if err != nil {
		f.Detail = err.Error()
	}
	d.findings = append(d.findings, f)
}

// checkKeys looks whether a server could start as far as keys go.
func (d *doctor) checkKeys() {
	serve := serveCommand{serveSettings: d.serveSettings}
	_, err := serve.keys(d.values)
	d.add("API keys", err, "set")
}

// checkStore looks at the store: through the server that has it open, or itself.
func (d *doctor) checkStore(ctx context.Context) {
	address, place, err := d.storeURL(d.values)
	if err != nil {
		d.add("store", err, "")
		return
	}
	u, adapter, err := parseStoreURL(address)
	if err != nil {
		d.add("store", at(place, err), "")
		return
	}
	if adapter.file != nil {
		file, err := adapter.file(d.main, u)
		if err != nil {
			d.add("store", at(place, err), "")
			return
		}
		d.checkDisk(file)
		if d.checkHolder(ctx, file) {
			return
		}
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
			d.add("store", nil, "%s is not there yet; a server creates it", file)
			return
		}
	}
	d.checkOpened(ctx)
}

// checkHolder asks the server that has the store open, if there is one.
func (d *doctor) checkHolder(ctx context.Context, file string) bool {
	server, err := control.Find(file)
	if err != nil {
		d.add("store", err, "")
		return true
	}
	if server == nil {
		return false
	}
	state, err := readiness(ctx, server.URL)
	if err == nil && state.Status != "ready" {
		err = fmt.Errorf("the server at %s (process %d) is not ready: %s", server.URL, server.PID, strings.Join(state.Reasons, "; "))
	}
	d.add("server", err, "process %d at %s has the store open and is ready", server.PID, server.URL)
	if err == nil {
		d.add("durability", d.durabilityProblem(state.Durability), "%s", state.Durability)
	}
	return true
}

// durabilityProblem says whether a class is less than what is asked for.
func (d *doctor) durabilityProblem(class string) error {
	if d.Durability == config.DurabilityStrict && class != store.Strict.String() {
		return fmt.Errorf("%s, but --durability asks for strict", class)
	}
	return nil
}

// checkOpened opens the store and looks at it.
func (d *doctor) checkOpened(ctx context.Context) {
	opened, err := d.storeSettings.open(ctx, d.main, d.values)
	if err != nil {
		d.add("store", err, "")
		return
	}
	defer func() {
		if err := opened.Close(); err != nil {
			d.add("store closed", err, "")
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, checkWithin)
	defer cancel()
	info, err := opened.Inspect(ctx)
	if err != nil {
		d.add("store", err, "")
		return
	}
	d.add("store", opened.Ping(ctx), "%s %s, schema version %d, reads and writes", info.Name, info.Version, info.Schema)
	var settings []string
	for _, name := range slices.Sorted(maps.Keys(info.Details)) {
		settings = append(settings, name+"="+info.Details[name])
	}
	d.add("durability", d.durabilityProblem(info.Durability.String()), "%s (%s)", info.Durability, strings.Join(settings, ", "))
	if clocker, ok := store.Power[store.Clocker](opened.Store); ok {
		d.checkClock(ctx, clocker)
	}
	d.checkNodes(ctx, opened.Store)
}

// checkNodes tells of the servers and workers that share the store.
func (d *doctor) checkNodes(ctx context.Context, s store.Store) {
	nodes, err := belfry.ReadNodes(ctx, s.Docs())
	if err != nil {
		d.add("nodes", err, "")
		return
	}
	now := time.Now()
	for i := range nodes {
		d.checkNode(&nodes[i], now)
	}
}

// checkNode tells of one. That one has ended in order is no problem; that it fell silent is, and so is a clock that is off.
func (d *doctor) checkNode(n *belfry.Node, now time.Time) {
	where := fmt.Sprintf("%s (process %d on %s)", n.Name, n.PID, n.Host)
	var err error
	switch {
	case !n.StoppedAt.IsZero():
		d.add("node", nil, "%s stopped at %s", where, instant(n.StoppedAt))
		return
	case !n.Alive(now):
		err = fmt.Errorf("%s has not been heard of since %s; its leases run out by themselves", where, instant(n.SeenAt))
	case n.Offset.Abs() > maxOffset:
		err = fmt.Errorf("the clock of %s differs from the store's by %v; set both by NTP", where, n.Offset.Round(time.Millisecond))
	}
	d.add("node", err, "%s runs, holds %d leases, its clock differs from the store's by %v", where, n.Held, n.Offset.Round(time.Millisecond))
}

// maxOffset is by how much the store's clock may differ from this machine's.
const maxOffset = 250 * time.Millisecond

// checkClock compares the store's clock with this machine's.
func (d *doctor) checkClock(ctx context.Context, clocker store.Clocker) {
	before := time.Now()
	now, err := clocker.Now(ctx)
	took := time.Since(before)
	offset := now.Sub(before.Add(took / 2))
	if err == nil && offset.Abs() > maxOffset+took {
		err = fmt.Errorf("the store's clock differs from this machine's by %v; set both by NTP", offset.Round(time.Millisecond))
	}
	d.add("clock", err, "the store's differs from this machine's by %v", offset.Round(time.Millisecond))
}

// leastSpace is how much a disk must have left.
const leastSpace = 256 << 20

// checkDisk looks how much space a file has to grow.
func (d *doctor) checkDisk(file string) {
	free, err := freeSpace(filepath.Dir(file))
	if errors.Is(err, errors.ErrUnsupported) {
		return
	}
	if err == nil && free < leastSpace {
		err = fmt.Errorf("%d MiB are left for %s; make room", free>>20, file)
	}
	d.add("disk", err, "%d MiB are left for %s", free>>20, file)
}

// checkNATS looks whether the configured NATS server can be reached.
func (d *doctor) checkNATS(ctx context.Context) {
	address, err := d.natsURL(d.values)
	if err != nil {
		d.add("NATS", err, "")
		return
	}
	if address == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, checkWithin)
	defer cancel()
	about, err := dialNATS(ctx, &d.targetSettings, address)
	d.add("NATS", err, "%s answers (%s)", address.Mask(), about)
}

// print writes the findings.
func (d *doctor) print() error {
	if d.JSON || !d.main.Terminal {
		encoder := json.NewEncoder(d.main.Stdout)
		encoder.SetIndent("", "  ")
		return encoder.Encode(d.findings)
	}
	w := tabwriter.NewWriter(d.main.Stdout, 0, 0, 2, ' ', 0)
	for _, f := range d.findings {
		state := "ok"
		if !f.OK {
			state = "PROBLEM"
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\n", f.Check, state, clean(f.Detail))
	}
	return w.Flush()
}
