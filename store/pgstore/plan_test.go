package pgstore

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/belfryhq/belfry/internal/testserver"
	"github.com/belfryhq/belfry/store/internal/sqlstore"
)

// planned is a statement of the hot path, or one that runs beside it, with arguments and how many rows of messages it may read.
type planned struct {
	name string
	args []any
	rows float64
}

// The claims are of 200 messages of a queue with at least 8 priorities.
const (
	planNow   = 2_000_000_000_000
	planLimit = 200
)

// statements are what is looked at. ids are those of leased messages of queue 7, and their versions.
func statements(ids, versions string) []planned {
	queues, numbers := repeated("q07"), repeated("0")
	return []planned{
		{"claim_set", []any{"q07", planLimit, planNow, planNow + 100, planNow + 30_000, "node", 1}, 4*planLimit + 50},
		{"claim_set", []any{"q07", planLimit, 1, 100, planNow + 30_000, "node", 1}, 50}, // nothing is due
		{"claim_from", []any{"q07", planLimit, planNow, planNow + 100, planNow + 30_000, "node", 1, "{0,1,2,3,4,5,6,7}", numbers[:16] + "}"}, 4*planLimit + 50},
		{"next", []any{"q07"}, 50},
		{"next_from", []any{"q07", "{0,1,2,3,4,5,6,7}", numbers[:16] + "}"}, 50},
		{"settle_set", []any{places(), queues, ids, versions, repeated("3"), numbers, repeated("9007199254740991"), numbers, repeated("1"),
			repeated("x"), repeated(""), planNow}, 3*planLimit + 50},
		{"extend_set", []any{places(), queues, ids, versions, planNow, planNow + 60_000}, 2*planLimit + 50},
		{"priorities", []any{"q07"}, 50},
		{"pick_due", []any{"q07", 3, planNow, planLimit}, planLimit},
		{"pick_ahead", []any{"q07", 3, planNow, planNow + 100, planLimit}, planLimit},
		{"pick_key", []any{"q07", "due-7", planNow}, 1},
		{"find_lease", []any{"q07", "due-7", 1}, 1},
		{"holder_live", []any{"q07", "none", ""}, 1},
		{"count_leases", []any{"q07", planNow}, 2 * planLimit},
		{"window", []any{"", 0, "", planNow - 1000}, 2000},
		{"live_queues", []any{"", 0, ""}, 2000},
		{"live_created_asc", []any{"q07", 0, "", 9007199254740991, 100, 62, "", "", 0, 0, 0}, 100},
		{"live_created_desc", []any{"q07", 9007199254740991, "", 0, 100, 62, "", "", 0, 0, 0}, 100},
		{"live_waiting_asc", []any{"q07", 3, 0, "", 9007199254740991, 100, 62, "", "", 0, 0, 0}, 400},
		{"purgeable", []any{planNow, 100}, 100},
	}
}

// repeated is an array of planLimit equal elements.
func repeated(element string) string {
	if element == "" {
		element = `""`
	}
	return "{" + strings.TrimSuffix(strings.Repeat(element+",", planLimit), ",") + "}"
}

func places() string {
	all := make([]string, planLimit)
	for i := range all {
		all[i] = fmt.Sprint(i)
	}
	return "{" + strings.Join(all, ",") + "}"
}

// TestPlansReadABoundedNumberOfRows fills 50 queues with as many messages that are due as such that are not (a million each
// at full scale), in 8 priorities, and looks at what statements read: before anything is analysed and after, with plans made
// for the arguments and for any arguments.
func TestPlansReadABoundedNumberOfRows(t *testing.T) {
	many := 40_000
	if os.Getenv("BELFRY_SCALE") == "full" {
		many = 1_000_000
	}
	c := fill(t, many)
	for _, analysed := range []bool{false, true} {
		if analysed {
			execute(t, c, "ANALYZE")
		}
		for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
			t.Run(fmt.Sprintf("analysed=%t/%s", analysed, mode), func(t *testing.T) { checkPlans(t, c, mode) })
		}
	}
}

// fill returns a connection to a database with messages.
func fill(t *testing.T, many int) *pgx.Conn {
	t.Helper()
	address := testserver.Postgres(t)
	s, err := Open(t.Context(), address, Settings{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	conf, err := Settings{}.config(address) // with what the store's connections have
	if err != nil {
		t.Fatal(err)
	}
	conf.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	conf.ConnConfig.RuntimeParams["statement_timeout"] = "0"
	c, err := pgx.ConnectConfig(t.Context(), conf.ConnConfig)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	execute(t, c, "ALTER TABLE belfry_messages SET (autovacuum_enabled = false)")
	for i, kind := range []string{"due", "future"} {
		execute(t, c, fmt.Sprintf(`INSERT INTO belfry_messages
			SELECT g + %d, 'q' || lpad((g %% 50)::text, 2, '0'), '%s-' || g, 1, (g / 50) %% 8, at, at, at, at, at, 1, 0, 0, '', 0, 0, 0, 0, NULL,
				'kind', '', '', '', '', '', '', NULL, 0, 0, 0, '', '', NULL, 'payload', ''
			FROM (SELECT g, %d + %d * (g / 400)::bigint AS at FROM generate_series(1, %d) g) AS s`,
			i*many, kind, planNow+[]int{-86_400_000, 86_400_000}[i], 10, many))
	}
	execute(t, c, `INSERT INTO belfry_finished SELECT -g, 'q07', 'done-' || g, 3, 0, 0, 0, 0, 0, 0, g, 1, 0, 0, NULL,
		'kind', '', '', '', '', '', '', NULL, 0, 0, 0, '', '', NULL, NULL, '' FROM generate_series(1, 10000) g`)
	return c
}

func execute(t *testing.T, c *pgx.Conn, query string) {
	t.Helper()
	if _, err := c.Exec(t.Context(), query); err != nil {
		t.Fatalf("%v: %s", err, query)
	}
}

func checkPlans(t *testing.T, c *pgx.Conn, mode string) {
	t.Helper()
	settings, err := Settings{}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	d, err := dialect(settings)
	if err != nil {
		t.Fatal(err)
	}
	all, err := d.Statements()
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]*sqlstore.Query{}
	for _, q := range all {
		byName[q.Name] = q
	}
	execute(t, c, "BEGIN")
	defer execute(t, c, "ROLLBACK")
	execute(t, c, "SET LOCAL plan_cache_mode = "+mode)
	execute(t, c, fmt.Sprintf(`UPDATE belfry_messages SET state = 2, visible_at = %d WHERE queue = 'q07'
		AND id IN (SELECT id FROM belfry_messages WHERE queue = 'q07' ORDER BY priority, visible_at, id LIMIT %d)`, planNow+30_000, planLimit))
	var ids, versions string
	err = c.QueryRow(t.Context(), "SELECT array_agg(id)::text, array_agg(version)::text FROM belfry_messages WHERE queue = 'q07' AND state = 2").Scan(&ids, &versions)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range statements(ids, versions) {
		q := byName[p.name]
		if q == nil {
			t.Fatalf("there is no query %s", p.name)
		}
		execute(t, c, "SAVEPOINT s")
		plan := explain(t, c, q, p.args)
		execute(t, c, "ROLLBACK TO SAVEPOINT s")
		var read float64
		var whole []string
		plan.walk(func(n *node) {
			if n.Relation == "belfry_messages" || n.Relation == "belfry_finished" {
				read += n.read()
			}
			if n.Type == "Seq Scan" {
				whole = append(whole, n.Relation)
			}
		})
		if read > p.rows || len(whole) > 0 && read > 50 {
			text, _ := json.MarshalIndent(plan, "", " ")
			t.Errorf("%s read %v rows, more than %v, and scanned %v:\n%s", p.name, read, p.rows, whole, text)
		}
	}
}

// node is a node of a plan that has run.
type node struct {
	Type      string  `json:"Node Type"`
	Relation  string  `json:"Relation Name,omitempty"`
	Index     string  `json:"Index Name,omitempty"`
	Rows      float64 `json:"Actual Rows"`
	Loops     float64 `json:"Actual Loops"`
	Removed   float64 `json:"Rows Removed by Filter,omitempty"`
	Rechecked float64 `json:"Rows Removed by Index Recheck,omitempty"`
	Plans     []*node `json:"Plans,omitempty"`
}

// read returns how many rows the node read of its table.
func (n *node) read() float64 {
	if !strings.Contains(n.Type, "Scan") {
		return 0
	}
	return (n.Rows + n.Removed + n.Rechecked) * n.Loops
}

func (n *node) walk(f func(*node)) {
	f(n)
	for _, part := range n.Plans {
		part.walk(f)
	}
}

// explain runs a statement, prepared as the store does, and returns its plan with what its nodes did.
func explain(t *testing.T, c *pgx.Conn, q *sqlstore.Query, args []any) *node {
	t.Helper()
	values := make([]string, len(q.Order))
	for i, from := range q.Order {
		values[i] = "'" + strings.ReplaceAll(fmt.Sprint(args[from]), "'", "''") + "'"
	}
	execute(t, c, "PREPARE looked_at AS "+q.SQL)
	defer execute(t, c, "DEALLOCATE looked_at")
	query := "EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE looked_at"
	if len(values) > 0 {
		query += " (" + strings.Join(values, ", ") + ")"
	}
	var text string
	if err := c.QueryRow(t.Context(), query).Scan(&text); err != nil {
		t.Fatalf("%s: %v", q.Name, err)
	}
	var plans []struct {
		Plan *node `json:"Plan"`
	}
	if err := json.Unmarshal([]byte(text), &plans); err != nil {
		t.Fatal(err)
	}
	return plans[0].Plan
}
