package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/belfryhq/belfry/cmd/belfry/internal/config"
)

// configCommand lists the settings.
type configCommand struct {
	JSON bool `name:"json" xor:"form" help:"As JSON."`
	Env  bool `xor:"form" help:"As an example of a file .env, with what each setting is for."`

	serveSettings `embed:""`
}

// Run prints each setting with its names, its value and where it was set.
func (c *configCommand) Run(m *Main, values config.Values) error {
	if c.Env {
		return printExample(m, values)
	}
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

// exampleHead begins an example of a file .env.
const exampleHead = `# Every setting of Belfry. Copy this file to .env and uncomment what you set; the environment wins over it, flags over both.
# A setting without a value counts as not set. Written by: belfry config --env
`

// exampleWidth is how long the lines of comments are.
const exampleWidth = 118

// printExample prints a file .env in which every setting is explained and commented out.
func printExample(m *Main, values config.Values) error {
	var text strings.Builder
	text.WriteString(exampleHead)
	for _, v := range values {
		if len(v.Vars) == 0 {
			continue
		}
		help := v.Help
		if v.Default == "" && v.Unset != "" {
			help += " Default: " + v.Unset + "."
		}
		text.WriteString("\n" + comment(help) + "# " + v.Vars[0] + "=" + v.Default + "\n")
	}
	_, err := io.WriteString(m.Stdout, text.String())
	return err
}

// comment breaks a text into lines of comments.
func comment(text string) string {
	var lines strings.Builder
	line := "#"
	for _, word := range strings.Fields(text) {
		if len(line)+1+len(word) > exampleWidth {
			lines.WriteString(line + "\n")
			line = "#"
		}
		line += " " + word
	}
	return lines.String() + line + "\n"
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
