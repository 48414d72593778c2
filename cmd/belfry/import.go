package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/belfryhq/belfry/api/timers"
	"github.com/belfryhq/belfry/cmd/belfry/internal/config"
	"github.com/belfryhq/belfry/store"
)

// importCommand brings over what other systems hold.
type importCommand struct {
	Timers importTimersCommand `cmd:"" help:"Bring over the timers of a timers platform from its PostgreSQL database."`
}

// importTimersCommand brings over timers. Stop the other platform before, so that no timer fires twice.
type importTimersCommand struct {
	From    config.Address `required:"" placeholder:"URL" help:"The platform's database: postgres://user:password@host/name."`
	Overdue overduePolicy  `placeholder:"fire|fail|keep-window=DURATION" help:"What becomes of pending timers that are overdue by more than 5 minutes: fire at once, fail, or fire those within the window and fail the rest."`
	DryRun  bool           `help:"Read and check everything, write nothing."`
	JSON    bool           `name:"json" help:"Print JSON; without it that is so when the output is no terminal."`

	storeSettings  `embed:"" group:"Store"`
	timersSettings `embed:"" group:"Timers"`
}

// overdueAfter is from when on a pending timer is overdue.
const overdueAfter = 5 * time.Minute

// overduePolicy says what becomes of overdue timers.
type overduePolicy struct {
	given  bool
	window time.Duration // those overdue by at most this fire
}

// UnmarshalText reads fire, fail or keep-window=DURATION.
func (p *overduePolicy) UnmarshalText(text []byte) error {
	switch window, isWindow := strings.CutPrefix(string(text), "keep-window="); {
	case isWindow:
		d, err := config.ParseDuration(window)
		if err != nil {
			return err
		}
		*p = overduePolicy{true, d}
	case string(text) == "fire":
		*p = overduePolicy{true, 1<<63 - 1}
	case string(text) == "fail":
		*p = overduePolicy{true, overdueAfter}
	default:
		return &config.Error{Value: string(text), Remedy: "give fire, fail or keep-window=5m"}
	}
	return nil
}

// imported counts what an import did, or, in a dry run, would do.
type imported struct {
	Read     int            `json:"read"`
	Imported map[string]int `json:"imported"` // by status
	Present  int            `json:"present"`  // were there already
	Overdue  int            `json:"overdue"`  // pending ones, by more than 5 minutes
	Failed   int            `json:"failed_as_overdue"`
	Refused  []refusedTimer `json:"refused"`
	DryRun   bool           `json:"dry_run,omitempty"`
}

// refusedTimer is one that cannot be imported.
type refusedTimer struct {
	ID    string `json:"id"`
	Error string `json:"error"`
}

// Run imports.
func (c *importTimersCommand) Run(ctx context.Context, m *Main, values config.Values) error {
	source, err := openForeignTimers(ctx, string(c.From))
	if err != nil {
		return &config.Error{Name: "--from", Value: c.From.Mask(), Remedy: err.Error()}
	}
	defer source.close()
	total, overdue, err := source.count(ctx, overdueAfter)
	if err != nil {
		return fmt.Errorf("read the timers: %w", err)
	}
	if overdue > 0 && !c.DryRun && !c.Overdue.given {
		return &config.Error{Name: "--overdue", Remedy: fmt.Sprintf(
			"not given, but %d pending timers are overdue by more than %v: give fire, fail or keep-window=DURATION", overdue, overdueAfter)}
	}
	run := &timersImport{importTimersCommand: c, main: m, source: source, total: total,
		result: imported{Imported: map[string]int{}, Overdue: overdue, DryRun: c.DryRun, Refused: []refusedTimer{}},
		rules:  timers.Import{Retention: time.Duration(c.TimersRetention), Callbacks: timerCheckers()},
	}
	if !c.DryRun {
		opened, err := c.storeSettings.open(ctx, m, values)
		if err != nil {
			return err
		}
		defer func() { _ = opened.Close() }() // every batch was answered
		run.store = opened.Store
	}
	if err := run.all(ctx); err != nil {
		return err
	}
	return run.print()
}

// timerCheckers are what refuses callbacks that could never be delivered.
func timerCheckers() map[string]timers.Checker {
	out := map[string]timers.Checker{}
	for name, checker := range checkers() {
		out[name] = checker
	}
	return out
}

// importBatch is how many timers are read and written at once.
const importBatch = 500

// timersImport is an import under way.
type timersImport struct {
	*importTimersCommand
	main   *Main
	source *foreignTimers
	store  store.Store // nil: a dry run
	rules  timers.Import
	total  int
	result imported
	shown  time.Time
}

// all reads everything in the order of ids. Timers that are there already are left as they are, so that an import that was
// broken off is run again.
func (i *timersImport) all(ctx context.Context) error {
	for after := ""; ; {
		rows, err := i.source.page(ctx, after, importBatch)
		if err != nil {
			return fmt.Errorf("read the timers: %w", err)
		}
		if len(rows) == 0 {
			i.progress(true)
			return nil
		}
		after = rows[len(rows)-1].ID
		if err := i.batch(ctx, rows); err != nil {
			return fmt.Errorf("write the timers after %d were read (run the import again, it goes on): %w", i.result.Read, err)
		}
		i.progress(false)
	}
}

// batch imports some timers.
func (i *timersImport) batch(ctx context.Context, rows []timers.Foreign) error {
	messages := make([]store.Message, 0, len(rows))
	statuses := make([]string, 0, len(rows))
	now := time.Now()
	for r := range rows {
		f := &rows[r]
		i.result.Read++
		m, err := i.rules.Message(f)
		if err != nil {
			i.result.Refused = append(i.result.Refused, refusedTimer{f.ID, err.Error()})
			continue
		}
		status := f.Status
		if f.Pending() {
			status = "pending"
			if late := now.Sub(m.FireAt); i.Overdue.given && late > overdueAfter && late > i.Overdue.window {
				i.rules.Fail(&m, fmt.Sprintf("overdue by %v when it was imported", late.Round(time.Second)), now)
				i.result.Failed++
				status = "failed"
			}
		}
		messages, statuses = append(messages, m), append(statuses, status)
	}
	if i.store == nil {
		for _, status := range statuses {
			i.result.Imported[status]++
		}
		return nil
	}
	results, err := i.store.Put(ctx, now, messages, 0)
	if err != nil {
		return err
	}
	for r, result := range results {
		switch {
		case result.Err == nil:
			i.result.Imported[statuses[r]]++
		case errors.Is(result.Err, store.ErrExists):
			i.result.Present++
		default:
			i.result.Refused = append(i.result.Refused, refusedTimer{messages[r].ID, result.Err.Error()})
		}
	}
	return nil
}

// progress tells people how far it is, twice a second.
func (i *timersImport) progress(end bool) {
	if !i.main.Terminal || i.total == 0 || !end && time.Since(i.shown) < time.Second/2 {
		return
	}
	i.shown = time.Now()
	const width = 30
	share := min(1, float64(i.result.Read)/float64(i.total))
	full := int(share * width)
	_, _ = fmt.Fprintf(i.main.Stderr, "\r[%s%s] %3.0f %%  %d of %d timers", strings.Repeat("#", full), strings.Repeat(".", width-full),
		100*share, i.result.Read, i.total)
	if end {
		_, _ = fmt.Fprintln(i.main.Stderr)
	}
}

// print says what was done. Timers that were refused make the exit code 1.
func (i *timersImport) print() error {
	r := &i.result
	if i.JSON || !i.main.Terminal {
		if err := json.NewEncoder(i.main.Stdout).Encode(r); err != nil {
			return err
		}
	} else {
		i.printText()
	}
	if len(r.Refused) > 0 {
		return exitCode(exitFailure)
	}
	return nil
}

func (i *timersImport) printText() {
	r, out := &i.result, i.main.Stdout
	verb := "imported"
	if r.DryRun {
		verb = "would be imported"
	}
	for _, status := range []string{"pending", "completed", "failed", "canceled"} {
		if n := r.Imported[status]; n > 0 {
			_, _ = fmt.Fprintf(out, "%d %s timers %s\n", n, status, verb)
		}
	}
	if r.Present > 0 {
		_, _ = fmt.Fprintf(out, "%d were there already\n", r.Present)
	}
	if r.Overdue > 0 {
		_, _ = fmt.Fprintf(out, "%d pending ones are overdue by more than %v", r.Overdue, overdueAfter)
		if r.Failed > 0 {
			_, _ = fmt.Fprintf(out, ", %d of them are imported as failed", r.Failed)
		}
		_, _ = fmt.Fprintln(out)
	}
	for _, refused := range r.Refused {
		_, _ = fmt.Fprintf(out, "refused: %s: %s\n", refused.ID, clean(refused.Error))
	}
}
