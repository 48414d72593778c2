package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/belfryhq/belfry/cmd/belfry/internal/config"
)

// configCommand lists the settings.
type configCommand struct {
	JSON bool `name:"json" help:"As JSON."`

	serveSettings `embed:""`
}

// Run prints each setting with its names, its value and where it was set.
func (c *configCommand) Run(m *Main, values config.Values) error {
	if c.JSON || !m.Terminal {
		return printSettings(m, values)
	}
	w := tabwriter.NewWriter(m.Stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "VARIABLE\tFLAG\tFILE\tVALUE\tFROM\tDEFAULT")
	for _, v := range values {
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n",
			dash(strings.Join(v.Vars, ", ")), dash(v.FlagName()), dash(v.Key), dash(v.Text), v.Origin.Place, dash(v.Usual()))
	}
	return w.Flush()
}

// dash stands for what is not there.
func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// settingLine is one setting as JSON.
type settingLine struct {
	Variables []string     `json:"variables,omitempty"`
	Flag      string       `json:"flag,omitempty"`
	Key       string       `json:"key,omitempty"`
	Value     string       `json:"value"`
	From      config.Place `json:"from"`
	Default   string       `json:"default"`
	Help      string       `json:"help"`
}

func printSettings(m *Main, values config.Values) error {
	lines := make([]settingLine, len(values))
	for i, v := range values {
		lines[i] = settingLine{
			Variables: v.Vars, Flag: v.FlagName(), Key: v.Key, Value: v.Text, From: v.Origin.Place, Default: v.Usual(), Help: v.Help,
		}
	}
	out := json.NewEncoder(m.Stdout)
	out.SetIndent("", "  ")
	return out.Encode(lines)
}
