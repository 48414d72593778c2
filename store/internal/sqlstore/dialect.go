package sqlstore

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
)

// Dialect is what a database has of its own: data, and how a claim takes messages.
type Dialect struct {
	// Queries are .sql files with the queries of queries.table, which says what arguments each has; what it returns
	// is told by the code that runs it, and by the dialects there are.
	Queries fs.FS
	// Placeholders is how arguments are written.
	Placeholders Placeholders
	// Inline is how many bytes of payload and metadata together stay in a message's row; what is larger goes to
	// bodies, so that a claim does not rewrite it. Negative: everything stays, and there are no queries on bodies.
	Inline int
	// Take is how a claim takes messages of a queue.
	Take Taker
	// Fragments are fragments of queries beside those of the files, such as what stands before the names of tables.
	Fragments map[string]string
}

// queries are the statements of a dialect. A pair is the same list in both directions, ascending first.
type queries struct {
	findLive, findFinished, findTrace                  *Query
	holderLive, holderFinished                         *Query
	insertNew, insertLive, insertFinished, insertBody  *Query
	deleteLive, deleteFinished, deleteBody             *Query
	insertTrace, deleteTrace                           *Query
	priorities, pickDue, pickAhead, pickKey            *Query
	lease, countLeases, rate, setRate                  *Query
	findLease, reschedule, finish                      *Query
	findHeld, extend, mark, forfeit                    *Query
	isLive, groupMembers, watch                        *Query
	insertGate, waiters, releaseWaiter                 *Query
	deleteGatesOfMember, deleteGatesOfWaiter           *Query
	liveCreated, liveWaiting, liveLeased, liveMoved    [2]*Query
	liveGroup, finishedGroup                           [2]*Query
	finishedCreated, finishedFire, finishedFinished    [2]*Query
	liveChildren, finishedChildren                     *Query
	liveRow, liveRowBare, finishedRow, finishedRowBare *Query
	countLive, countLeased, countFinished              *Query
	countLiveGroup, countFinishedGroup                 *Query
	liveQueues, finishedQueues, window                 *Query
	purgeable                                          *Query
	docGet, docPut, docDelete, docList                 *Query
	revision, raiseRevision                            *Query

	// What a database needs where several writers work at once; where a dialect has none of them there is one writer.
	lockLive, lockFinished, lockQueue, lockRevision *Query
	checkNew, rows, version, raiseVersion           *Query

	// What a dialect may have to do a batch in one statement, with arrays as arguments: the DB is then a Batcher.
	claimBegin, claimSet, claimFrom, next, nextFrom, claimEnd, insertSet, checkSet, settleSet, extendSet *Query
}

// Lists of arguments that several queries have.
const (
	filterParams = "states, kind, group_name, fired, fire_min, fire_max"
	streamParams = "key, id, end, limit, " + filterParams
)

// table is every query that the package asks for, with its arguments.
func (q *queries) table() []binding {
	table := []binding{
		{&q.findLive, "find_live", "queue, id"},
		{&q.findFinished, "find_finished", "queue, id"},
		{&q.findTrace, "find_trace", "queue, id"},
		{&q.holderLive, "holder_live", "queue, dedup_key, id"},
		{&q.holderFinished, "holder_finished", "queue, dedup_key, id, now"},
		{&q.insertNew, "insert_new", "record, now"},
		{&q.insertLive, "insert_live", "record"},
		{&q.insertFinished, "insert_finished", "record"},
		{&q.deleteLive, "delete_live", "n"},
		{&q.deleteFinished, "delete_finished", "n"},
		{&q.insertTrace, "insert_trace", "queue, id, purge_at, version"},
		{&q.deleteTrace, "delete_trace", "queue, id"},

		{&q.priorities, "priorities", "queue"},
		{&q.pickDue, "pick_due", "queue, priority, now, limit"},
		{&q.pickAhead, "pick_ahead", "queue, priority, now, horizon, limit"},
		{&q.pickKey, "pick_key", "queue, id, now"},
		{&q.lease, "lease", "n, until, owner, epoch, now"},
		{&q.countLeases, "count_leases", "queue, now"},
		{&q.rate, "rate", "queue"},
		{&q.setRate, "set_rate", "queue, arrival"},
		{&q.findLease, "find_lease", "queue, id, version"},
		{&q.reschedule, "reschedule", "n, at, uncount, attempted, history, error, now"},
		{&q.finish, "finish", "n, state, purge_at, attempted, history, error, now"},
		{&q.findHeld, "find_held", "queue, id, version, now"},
		{&q.extend, "extend", "n, until"},
		{&q.mark, "mark", "queue, id, now"},
		{&q.forfeit, "forfeit", "owner, epoch, now"},

		{&q.isLive, "is_live", "queue, id"},
		{&q.groupMembers, "group_members", "queue, group_name"},
		{&q.watch, "watch", "queue, id"},
		{&q.insertGate, "insert_gate", "queue, member, waiter"},
		{&q.waiters, "waiters", "queue, member"},
		{&q.releaseWaiter, "release_waiter", "queue, id, now"},
		{&q.deleteGatesOfMember, "delete_gates_of_member", "queue, member"},
		{&q.deleteGatesOfWaiter, "delete_gates_of_waiter", "queue, waiter"},

		{&q.liveChildren, "live_children", "parent, " + filterParams},
		{&q.finishedChildren, "finished_children", "parent, " + filterParams},
		{&q.liveRow, "live_row", "n"},
		{&q.liveRowBare, "live_row_bare", "n"},
		{&q.finishedRow, "finished_row", "n"},
		{&q.finishedRowBare, "finished_row_bare", "n"},
		{&q.countLive, "count_live", "queue, " + filterParams},
		{&q.countLeased, "count_leased", "queue"},
		{&q.countFinished, "count_finished", "queue, " + filterParams},
		{&q.countLiveGroup, "count_live_group", "queue, " + filterParams},
		{&q.countFinishedGroup, "count_finished_group", "queue, " + filterParams},
		{&q.liveQueues, "live_queues", "queue, priority, prefix"},
		{&q.finishedQueues, "finished_queues", "queue, priority, prefix"},
		{&q.window, "window", "queue, priority, prefix, min"},

		{&q.purgeable, "purgeable", "now, limit"},
		{&q.docGet, "doc_get", "name"},
		{&q.docPut, "doc_put", "name, version, body"},
		{&q.docDelete, "doc_delete", "name"},
		{&q.docList, "doc_list", "name, limit"},
		{&q.revision, "revision", ""},
		{&q.raiseRevision, "raise_revision", ""},
	}
	return append(table, q.lists()...)
}

// lists are the queries that there are in both directions.
func (q *queries) lists() []binding {
	var table []binding
	both := func(to *[2]*Query, name, params string) {
		table = append(table, binding{&to[0], name + "_asc", params}, binding{&to[1], name + "_desc", params})
	}
	both(&q.liveCreated, "live_created", "queue, "+streamParams)
	both(&q.liveWaiting, "live_waiting", "queue, priority, "+streamParams)
	both(&q.liveLeased, "live_leased", "queue, "+streamParams)
	both(&q.liveMoved, "live_moved", "queue, "+streamParams)
	both(&q.liveGroup, "live_group", "queue, "+streamParams)
	both(&q.finishedCreated, "finished_created", "queue, "+streamParams)
	both(&q.finishedFire, "finished_fire", "queue, "+streamParams)
	both(&q.finishedFinished, "finished_finished", "queue, "+streamParams)
	both(&q.finishedGroup, "finished_group", "queue, "+streamParams)
	return table
}

// bodies are the queries of dialects that keep large payloads apart.
func (q *queries) bodies() []binding {
	return []binding{
		{&q.insertBody, "insert_body", "n, metadata, payload"},
		{&q.deleteBody, "delete_body", "n"},
	}
}

// optional are the queries that a dialect may lack: all of a group or none.
func (q *queries) optional() [][]binding {
	return [][]binding{{
		{&q.lockLive, "lock_live", "queue, id"},
		{&q.lockFinished, "lock_finished", "queue, id"},
		{&q.lockQueue, "lock_queue", "queue"},
		{&q.lockRevision, "lock_revision", ""},
		{&q.checkNew, "check_new", "queue, id, dedup_key, now"},
		{&q.rows, "rows", ""},
		{&q.version, "version", ""},
		{&q.raiseVersion, "raise_version", "value"},
	}, {
		{&q.claimBegin, "claim_begin", ""},
		{&q.claimSet, "claim_set", "queue, limit, now, horizon, until, owner, epoch"},
		{&q.claimFrom, "claim_from", "queue, limit, now, horizon, until, owner, epoch, priorities, since"},
		{&q.next, "next", "queue"},
		{&q.nextFrom, "next_from", "queue, priorities, since"},
		{&q.claimEnd, "claim_end", ""},
		{&q.insertSet, "insert_set", "record, now"},
		{&q.checkSet, "check_set", "queue, id, dedup_key, now"},
		{&q.settleSet, "settle_set", "place, queue, id, version, state, at, purge_at, uncount, attempted, line, error, now"},
		{&q.extendSet, "extend_set", "place, queue, id, version, now, until"},
	}}
}

// load reads the dialect's queries and checks that they are what the package asks for.
func (d *Dialect) load() (*queries, error) {
	set, err := loadQueries(d.Queries, d.Placeholders, d.Fragments)
	if err != nil {
		return nil, fmt.Errorf("read queries: %w", err)
	}
	var q queries
	table := q.table()
	if d.Inline >= 0 {
		table = append(table, q.bodies()...)
	}
	for _, group := range q.optional() {
		if set[group[0].name] != nil {
			table = append(table, group...)
		}
	}
	if err := set.bind(table); err != nil {
		return nil, fmt.Errorf("read queries: %w", err)
	}
	return &q, nil
}

// Statements returns every query of the dialect in the order of their names, for tests that look at the database's plans.
func (d *Dialect) Statements() ([]*Query, error) {
	set, err := loadQueries(d.Queries, d.Placeholders, d.Fragments)
	if err != nil {
		return nil, err
	}
	return slices.SortedFunc(maps.Values(set), func(a, b *Query) int { return strings.Compare(a.Name, b.Name) }), nil
}
