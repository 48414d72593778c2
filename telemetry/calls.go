package telemetry

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/belfryhq/belfry/store"
)

// op is a method of a store.
type op uint8

const (
	opPut op = iota
	opClaim
	opSettle
	opExtend
	opAsk // Extend that only asks
	opReplace
	opForfeit
	opGet
	opHolder
	opList
	opCount
	opQueues
	opPurge
	opPing
	opDocsGet
	opDocsPut
	opDocsDelete
	opDocsList
	opDocsRevision
	ops // how many there are
)

var opNames = [ops]string{
	"put", "claim", "settle", "extend", "ask", "replace", "forfeit", "get", "holder", "list", "count", "queues", "purge", "ping",
	"docs_get", "docs_put", "docs_delete", "docs_list", "docs_revision",
}

// batched are the ops whose size is of interest.
var batched = [...]op{opPut, opClaim, opSettle, opExtend, opAsk, opReplace, opList, opPurge}

var (
	callBuckets = []float64{
		.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30,
	}
	batchBuckets = []float64{0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000}
)

// The answers to a message that was put, and to a change.
var (
	putResults = []result{
		{"accepted", nil},
		{"exists", store.ErrExists},
		{"duplicate", store.ErrDuplicate},
		{"in_flight", store.ErrInFlight},
		{"aborted", store.ErrAborted},
	}
	changeResults = []result{
		{"applied", nil},
		{"not_found", store.ErrNotFound},
		{"conflict", store.ErrConflict},
		{"in_flight", store.ErrInFlight},
		{"duplicate", store.ErrDuplicate},
	}
	// The results of a settlement are those of its outcome where it was applied, and these.
	settleResults = []result{
		{"", nil},
		{"lease_lost", store.ErrLeaseLost},
	}
	outcomeNames = [store.OutcomeCancel + 1]string{
		store.OutcomeDone: "done", store.OutcomeRetry: "retry", store.OutcomeRelease: "release",
		store.OutcomeBury: "dead", store.OutcomeCancel: "canceled",
	}
)

// calls are the metrics of what stores are asked and what they answer.
type calls struct {
	seconds *prometheus.HistogramVec
	batch   *prometheus.HistogramVec
	errors  *prometheus.CounterVec
	put     *prometheus.CounterVec
	settled *prometheus.CounterVec
	extends *prometheus.CounterVec
	changes *prometheus.CounterVec

	claimed, followUps, purged, forfeited prometheus.Counter

	// The same with their labels bound, so that a call need not look them up.
	byOp         [ops]call
	putBy        tally
	settledBy    [len(outcomeNames)]prometheus.Counter
	refusedBy    tally
	changedBy    tally
	held, unheld prometheus.Counter
}

func newCalls() *calls {
	c := &calls{
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "belfry_store_call_seconds", Help: "How long calls to the store took.", Buckets: callBuckets,
		}, []string{"op"}),
		batch: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "belfry_store_batch_messages",
			Help: "How many messages a call to the store gave, or got (claim, list, purge).", Buckets: batchBuckets,
		}, []string{"op"}),
		errors:  counters("belfry_store_errors_total", "Calls to the store that failed, by class.", "op", "class"),
		put:     counters("belfry_messages_put_total", "Messages handed to the store, by its answer.", "result"),
		settled: counters("belfry_settlements_total", "Leases ended, by the outcome or why it was refused.", "result"),
		extends: counters("belfry_extensions_total", "Leases asked to be extended, by the store's answer.", "result"),
		changes: counters("belfry_changes_total", "Changes from outside, by the store's answer.", "result"),
		claimed: counter("belfry_messages_claimed_total", "Messages claimed."),
		followUps: counter("belfry_follow_ups_total",
			"Messages handed to the store with a settlement that was applied."),
		purged:    counter("belfry_messages_purged_total", "Finished messages and traces of ids removed."),
		forfeited: counter("belfry_leases_forfeited_total", "Leases of earlier runs ended when a worker started."),
	}
	c.bind()
	return c
}

func counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

// bind makes every series once, which also shows them as zero from the start.
func (c *calls) bind() {
	for o := range ops {
		c.byOp[o].seconds = c.seconds.WithLabelValues(opNames[o])
		for k := range classes {
			c.byOp[o].errors[k] = c.errors.WithLabelValues(opNames[o], classNames[k])
		}
	}
	for _, o := range batched {
		c.byOp[o].batch = c.batch.WithLabelValues(opNames[o])
	}
	c.putBy = newTally(c.put, putResults)
	c.changedBy = newTally(c.changes, changeResults)
	c.refusedBy = newTally(c.settled, settleResults)
	for outcome, name := range outcomeNames {
		if name != "" {
			c.settledBy[outcome] = c.settled.WithLabelValues(name)
		}
	}
	c.held, c.unheld = c.extends.WithLabelValues("extended"), c.extends.WithLabelValues("lost")
}

func (c *calls) collectors() []prometheus.Collector {
	return []prometheus.Collector{
		c.seconds, c.batch, c.errors, c.put, c.settled, c.extends, c.changes, c.claimed, c.followUps, c.purged, c.forfeited,
	}
}

// call is one op's metrics.
type call struct {
	seconds prometheus.Observer
	batch   prometheus.Observer // nil unless the op is batched
	errors  [classes]prometheus.Counter
}

// done notes a call that has ended.
func (c *call) done(ctx context.Context, start time.Time, err error) {
	c.seconds.Observe(time.Since(start).Seconds())
	if k, failed := classify(ctx, err); failed {
		c.errors[k].Inc()
	}
}

// doneMany notes a call about n messages that has ended.
func (c *call) doneMany(ctx context.Context, start time.Time, n int, err error) {
	c.done(ctx, start, err)
	c.batch.Observe(float64(n))
}

// result is what a store answered about one message.
type result struct {
	name string
	err  error
}

// maxResults is how many results a tally tells apart, "other" included.
const maxResults = 6

// tally counts the answers of a batch.
type tally struct {
	results  []result
	counters [maxResults]prometheus.Counter // one for each result, then that of any other error
}

// newTally binds the counters of the results; a result without a name is not counted.
func newTally(vec *prometheus.CounterVec, results []result) tally {
	t := tally{results: results}
	for i, r := range results {
		if r.name != "" {
			t.counters[i] = vec.WithLabelValues(r.name)
		}
	}
	t.counters[len(results)] = vec.WithLabelValues("other")
	return t
}

// place returns which result an error is.
func (t *tally) place(err error) int {
	for i, r := range t.results {
		if r.err == err || err != nil && errors.Is(err, r.err) { //nolint:errorlint // the first is for nil and speed
			return i
		}
	}
	return len(t.results)
}

// add adds what was counted at each place.
func (t *tally) add(counts *[maxResults]int) {
	for i, n := range counts {
		if n > 0 && t.counters[i] != nil {
			t.counters[i].Add(float64(n))
		}
	}
}
