package sqlitestore

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/belfryhq/belfry/store"
)

// scans are the plans that may read a whole index, each with the reason.
var scans = map[string]string{
	"forfeit": "SCAN messages USING INDEX messages_leased", // all live leases, of which there are few
}

// probes are steps that the plans of the hot path have: how much of an index each uses.
var probes = map[string]string{
	"priorities":         "SEARCH x USING COVERING INDEX messages_claim (queue=? AND priority>?)",
	"pick_due":           "SEARCH m USING INDEX messages_claim (queue=? AND priority=? AND visible_at<?)",
	"pick_ahead":         "SEARCH m USING INDEX messages_claim (queue=? AND priority=? AND visible_at>? AND visible_at<?)",
	"count_leases":       "SEARCH messages USING COVERING INDEX messages_leased (queue=?)",
	"find_lease":         "SEARCH messages USING INDEX messages_id (queue=? AND id=?)",
	"lease":              "SEARCH messages USING INTEGER PRIMARY KEY (rowid=?)",
	"window":             "SEARCH x USING COVERING INDEX messages_claim ((queue,priority)>(?,?))",
	"live_queues":        "SEARCH m USING COVERING INDEX messages_claim (queue>?)",
	"live_created_desc":  "SEARCH m USING INDEX messages_created (queue=? AND created_at>? AND (created_at,id)<(?,?))",
	"live_waiting_asc":   "SEARCH m USING INDEX messages_claim (queue=? AND priority=? AND (visible_at,id)>(?,?) AND visible_at<?)",
	"finished_fire_desc": "SEARCH m USING INDEX finished_fire (queue=? AND fire_at>? AND (fire_at,id)<(?,?))",
	"purgeable":          "SEARCH finished USING INDEX finished_purge (purge_at<?)",
}

// TestPlans checks that no query reads a table from end to end, or sorts.
func TestPlans(t *testing.T) {
	s := openTest(t, filepath.Join(t.TempDir(), "plans.db"))
	checkPlans(t, s.path)
	t.Run("after ANALYZE of a lopsided table", func(t *testing.T) {
		now := time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC)
		var messages []store.Message
		for i := range 500 {
			m := store.Message{Queue: "q", ID: string(rune('a' + i)), FireAt: now}
			if i%2 == 0 {
				m.State, m.FinishedAt, m.PurgeAt = store.Done, now, now
			}
			messages = append(messages, m)
		}
		if _, err := s.Put(t.Context(), now, messages, 0); err != nil {
			t.Fatal(err)
		}
		runIn(t, s, "ANALYZE")
		checkPlans(t, s.path)
	})
}

func checkPlans(t *testing.T, path string) {
	t.Helper()
	d, err := dialect()
	if err != nil {
		t.Fatal(err)
	}
	queries, err := d.Statements()
	if err != nil {
		t.Fatal(err)
	}
	c, err := open(path, sqlite.OpenReadOnly)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	for _, q := range queries {
		steps := plan(t, c, q.SQL)
		if probe, ok := probes[q.Name]; ok && !slices.Contains(steps, probe) {
			t.Errorf("%s: no step is %q:\n%s", q.Name, probe, strings.Join(steps, "\n"))
		}
		for _, step := range steps {
			sorts := strings.Contains(step, "TEMP B-TREE")
			// CTEs have names of one letter, and a row of constants is no table.
			whole := strings.HasPrefix(step, "SCAN ") && len(strings.Fields(step)[1]) > 1 && step != "SCAN CONSTANT ROW"
			if (sorts || whole) && scans[q.Name] != step {
				t.Errorf("%s: %s\n%s", q.Name, step, q.SQL)
			}
		}
	}
}

// plan returns the steps of SQLite's plan for a query.
func plan(t *testing.T, c *conn, query string) []string {
	t.Helper()
	stmt, _, err := c.db.PrepareTransient("EXPLAIN QUERY PLAN " + query)
	if err != nil {
		t.Fatalf("%v\n%s", err, query)
	}
	defer stmt.Finalize()
	var steps []string
	for {
		more, err := stmt.Step()
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			return steps
		}
		steps = append(steps, stmt.GetText("detail"))
	}
}
