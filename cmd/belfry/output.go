package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	v1 "github.com/belfryhq/belfry/api/v1"
)

// output writes messages for people or as JSON.
type output struct {
	w     io.Writer
	human bool
}

// output returns where a command prints to: JSON if it is asked for, or if nobody is there to read tables.
func (c *messagesCommand) output(m *Main) output { return output{m.Stdout, m.Terminal && !c.JSON} }

// json writes a value on one line.
func (o output) json(v any) error {
	encoder := json.NewEncoder(o.w)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(v)
}

// message writes one message with all that is known of it.
func (o output) message(m *v1.Message) error {
	if !o.human {
		return o.json(m)
	}
	w := tabwriter.NewWriter(o.w, 0, 0, 2, ' ', 0)
	for _, line := range describe(m) {
		if line[1] != "" {
			_, _ = fmt.Fprintf(w, "%s\t%s\n", line[0], clean(line[1]))
		}
	}
	for _, a := range m.History {
		_, _ = fmt.Fprintf(w, "Attempt %d\t%s, %.3fs%s\n", a.Number, instant(a.StartedAt), a.Seconds, clean(outcome(&a)))
	}
	return w.Flush()
}

// describe returns the lines that describe a message.
func describe(m *v1.Message) [][2]string {
	lines := [][2]string{
		{"Queue", m.Queue},
		{"Id", m.ID},
		{"State", m.State},
		{"Kind", m.Kind},
		{"Goes to", strings.TrimSpace(m.Target + " " + m.Address)},
		{"Fires at", instant(m.FireAt)},
	}
	if !m.DueAt.Equal(m.FireAt) {
		lines = append(lines, [2]string{"Next attempt", instant(m.DueAt)})
	}
	if m.FinishedAt != nil {
		lines = append(lines, [2]string{"Finished at", instant(*m.FinishedAt)})
	}
	lines = append(lines,
		[2]string{"Created at", instant(m.CreatedAt)},
		[2]string{"Group", m.Group},
		[2]string{"Dedup key", m.DedupKey},
		[2]string{"Metadata", string(m.Metadata)},
		[2]string{"Payload", m.PayloadText},
		[2]string{"Last error", m.LastError},
	)
	if m.PayloadBase64 != nil {
		lines = append(lines, [2]string{"Payload", fmt.Sprintf("%d bytes that are no text (--json shows them)", len(m.PayloadBase64))})
	}
	return lines
}

// outcome says how an attempt ended.
func outcome(a *v1.Attempt) string {
	text := ", delivered"
	if a.Error != "" {
		text = ", " + a.Error
	} else if a.Status != 0 {
		text += fmt.Sprintf(" (%d)", a.Status)
	}
	return text
}

// instant writes an instant for people, in their time zone.
func instant(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05.000 -07:00") }

// page writes a part of a list.
func (o output) page(p *v1.Page) error {
	if !o.human {
		return o.json(p)
	}
	if len(p.Messages) == 0 {
		_, err := fmt.Fprintln(o.w, "No messages.")
		return err
	}
	w := tabwriter.NewWriter(o.w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "QUEUE\tID\tSTATE\tFIRES AT\tATTEMPTS\tGOES TO\tLAST ERROR")
	for i := range p.Messages {
		m := &p.Messages[i]
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%s\t%s\n", clean(m.Queue), clean(m.ID), m.State, instant(m.FireAt), m.Attempts,
			short(clean(goesTo(m)), 60), short(clean(m.LastError), 60))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if p.Next != "" {
		_, err := fmt.Fprintf(o.w, "%d of %d; for more: --cursor %s\n", len(p.Messages), p.Total, p.Next)
		return err
	}
	return nil
}

// goesTo names a message's destination: its address, or the kind that a handler is found by.
func goesTo(m *v1.Message) string {
	if m.Address == "" {
		return m.Kind
	}
	return m.Address
}

// change writes one line about a message that is new or different.
func (o output) change(m *v1.Message) error {
	if !o.human {
		return o.json(m)
	}
	text := fmt.Sprintf("%s  %-9s  %s %s", m.UpdatedAt.Local().Format("15:04:05.000"), m.State, m.Queue, m.ID)
	if m.Attempts > 0 {
		text += fmt.Sprintf("  attempts %d", m.Attempts)
	}
	if m.LastError != "" {
		text += "  " + m.LastError
	}
	_, err := fmt.Fprintln(o.w, clean(text))
	return err
}

// clean replaces what a terminal would obey or a table would break at: texts come from everywhere.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			return '·'
		}
		return r
	}, text)
}

// short returns the beginning of a text.
func short(text string, most int) string {
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return string(runes[:most-1]) + "…"
}
