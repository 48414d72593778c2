package main

import (
	"context"
	"encoding/json"
	"fmt"
	"text/tabwriter"

	"github.com/belfryhq/belfry/cmd/belfry/internal/config"
)

// migrateCommand changes the tables of a store. A server brings them up to date by itself when it starts.
type migrateCommand struct {
	Up     migrateUpCommand     `cmd:"" help:"Bring the tables up to date, as a server does when it starts."`
	Down   migrateDownCommand   `cmd:"" help:"Take the last step back, with what is in its tables."`
	Status migrateStatusCommand `cmd:"" help:"Tell which steps were made."`
	Dump   migrateDumpCommand   `cmd:"" help:"Print the SQL that makes the tables, for those whose schemas only people change."`
}

// migrateShared is what the three have in common.
type migrateShared struct {
	JSON bool `name:"json" help:"Print JSON; without it that is so when the output is no terminal."`

	storeSettings `embed:"" group:"Store"`
}

// migrator returns what changes the store's tables.
func (c *migrateShared) migrator(m *Main, values config.Values) (migrator, error) {
	address, place, err := c.storeURL(values)
	if err != nil {
		return nil, err
	}
	u, adapter, err := parseStoreURL(address)
	if err != nil {
		return nil, at(place, err)
	}
	if adapter.migrations == nil {
		return nil, at(place, &config.Error{Value: address.Mask(), Remedy: "this store has no tables"})
	}
	migrations, err := adapter.migrations(m, u)
	if err != nil {
		return nil, at(place, err)
	}
	return migrations, nil
}

// print writes steps.
func (c *migrateShared) print(m *Main, steps []migration, none string) error {
	if c.JSON || !m.Terminal {
		if steps == nil {
			steps = []migration{}
		}
		return json.NewEncoder(m.Stdout).Encode(steps)
	}
	if len(steps) == 0 {
		_, err := fmt.Fprintln(m.Stdout, none)
		return err
	}
	w := tabwriter.NewWriter(m.Stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "VERSION\tSTEP\tMADE AT")
	for _, s := range steps {
		made := "-"
		if !s.AppliedAt.IsZero() {
			made = instant(s.AppliedAt)
		}
		_, _ = fmt.Fprintf(w, "%d\t%s\t%s\n", s.Version, s.Name, made)
	}
	return w.Flush()
}

type migrateUpCommand struct {
	migrateShared `embed:""`
}

// Run makes every step that is missing.
func (c *migrateUpCommand) Run(ctx context.Context, m *Main, values config.Values) error {
	migrations, err := c.migrator(m, values)
	if err != nil {
		return err
	}
	made, err := migrations.Up(ctx)
	if err != nil {
		return err
	}
	return c.print(m, made, "The tables are up to date.")
}

type migrateDownCommand struct {
	Yes bool `required:"" help:"Confirm that what is in the tables of the last step may be lost."`

	migrateShared `embed:""`
}

// Run takes the last step back.
func (c *migrateDownCommand) Run(ctx context.Context, m *Main, values config.Values) error {
	migrations, err := c.migrator(m, values)
	if err != nil {
		return err
	}
	undone, err := migrations.Down(ctx)
	if err != nil {
		return err
	}
	return c.print(m, undone, "There is no step to take back.")
}

type migrateStatusCommand struct {
	migrateShared `embed:""`
}

// Run tells which steps were made.
func (c *migrateStatusCommand) Run(ctx context.Context, m *Main, values config.Values) error {
	migrations, err := c.migrator(m, values)
	if err != nil {
		return err
	}
	all, err := migrations.Status(ctx)
	if err != nil {
		return err
	}
	return c.print(m, all, "There are no steps.")
}

type migrateDumpCommand struct {
	migrateShared `embed:""`
}

// Run prints the SQL.
func (c *migrateDumpCommand) Run(_ context.Context, m *Main, values config.Values) error {
	migrations, err := c.migrator(m, values)
	if err != nil {
		return err
	}
	text, err := migrations.Dump()
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(m.Stdout, text)
	return err
}
