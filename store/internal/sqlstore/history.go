package sqlstore

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/belfryhq/belfry/store"
)

// A history is text: one line of JSON for each attempt, oldest first, every line ended. So an attempt is added, and the
// oldest dropped, without decoding the others.

// attemptLine is the JSON of an attempt. Its instants are Unix milliseconds, like all that are stored.
type attemptLine struct {
	Number   int    `json:"n"`
	At       *int64 `json:"at"`
	Nanos    int64  `json:"ns"`
	Error    string `json:"error"`
	Status   int    `json:"status"`
	Response []byte `json:"response"`
	Owner    string `json:"owner"`
}

// appendAttempt appends the attempt's line. It is written by hand since every settlement writes one.
func appendAttempt(line []byte, a *store.Attempt) []byte {
	line = append(line, `{"n":`...)
	line = strconv.AppendInt(line, int64(a.Number), 10)
	if !a.StartedAt.IsZero() {
		line = append(line, `,"at":`...)
		line = strconv.AppendInt(line, floor(a.StartedAt), 10)
	}
	if a.Duration != 0 {
		line = append(line, `,"ns":`...)
		line = strconv.AppendInt(line, int64(a.Duration), 10)
	}
	line = appendText(line, `,"error":`, a.Error)
	if a.Status != 0 {
		line = append(line, `,"status":`...)
		line = strconv.AppendInt(line, int64(a.Status), 10)
	}
	if len(a.Response) > 0 {
		line = append(line, `,"response":"`...)
		line = base64.StdEncoding.AppendEncode(line, a.Response)
		line = append(line, '"')
	}
	line = appendText(line, `,"owner":`, a.Owner)
	return append(line, "}\n"...)
}

// appendText appends a field with a text, unless it is empty.
func appendText(line []byte, name, text string) []byte {
	if text == "" {
		return line
	}
	quoted, err := json.Marshal(text)
	if err != nil {
		panic("sqlstore: a string is always valid JSON: " + err.Error())
	}
	return append(append(line, name...), quoted...)
}

// encodeAttempt returns the attempt's line; none for nil.
func encodeAttempt(a *store.Attempt) string {
	if a == nil {
		return ""
	}
	return string(appendAttempt(nil, a))
}

// encodeHistory returns the last attempts, at most store.MaxHistory.
func encodeHistory(attempts []store.Attempt) string {
	var text []byte
	for i := range attempts[max(0, len(attempts)-store.MaxHistory):] {
		text = appendAttempt(text, &attempts[max(0, len(attempts)-store.MaxHistory)+i])
	}
	return string(text)
}

// appendLine returns the history with one more attempt, the last store.MaxHistory of them. No line: it stays.
func appendLine(history, line string) string {
	if line != "" && strings.Count(history, "\n") >= store.MaxHistory {
		_, history, _ = strings.Cut(history, "\n")
	}
	return history + line
}

func decodeHistory(text string) ([]store.Attempt, error) {
	if text == "" {
		return nil, nil
	}
	attempts := make([]store.Attempt, 0, strings.Count(text, "\n"))
	for line := range strings.Lines(text) {
		var l attemptLine
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			return nil, fmt.Errorf("decode attempt: %w", err)
		}
		a := store.Attempt{
			Number: l.Number, Duration: time.Duration(l.Nanos), Error: l.Error, Status: l.Status, Response: l.Response, Owner: l.Owner,
		}
		if l.At != nil {
			a.StartedAt = instant(*l.At)
		}
		attempts = append(attempts, a)
	}
	return attempts, nil
}
