package telemetry

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/belfryhq/belfry/store"
)

const (
	// countPart: at most one part in so many of the time is spent on one question.
	countPart = 50
	// queuesPage is how many queues are read at once, queuesPages how often: what is beyond is not seen.
	queuesPage, queuesPages = 10_000, 10
)

// gauge is one value that scrapes read from stores.
type gauge struct {
	desc   *prometheus.Desc
	labels []string
	join   func(a, b float64) float64 // of several stores
}

// question is what a store is asked at a scrape: it yields the values of some gauges.
type question struct {
	gauges []*gauge
	every  time.Duration // how old an answer may be
	ask    func(ctx context.Context, s store.Store, now time.Time) ([]float64, error)
}

// backlog is what waits in stores, read when somebody scrapes, and not more often than is cheap.
type backlog struct {
	questions []question
	descs     []*prometheus.Desc
	skew      *prometheus.Desc
	budget    time.Duration

	mu     sync.Mutex
	stores []*polled
}

// polled is a store with the answers it gave.
type polled struct {
	*measured
	answers []answer // one for each question
}

// answer is the last answer to a question.
type answer struct {
	values []float64 // nil: none, or the last try failed
	next   time.Time // when to ask again
}

func newBacklog(settings MetricsSettings) *backlog {
	b := &backlog{budget: settings.ScrapeBudget}
	b.skew = b.describe("belfry_clock_skew_seconds",
		"By how much the store's clock is ahead of this machine's, to within half the time a claim takes.")
	if settings.BacklogEvery > 0 {
		b.questions = append(b.questions, b.queuesQuestion(settings.BacklogEvery), b.nodesQuestion(settings.BacklogEvery))
	}
	if settings.CountEvery > 0 {
		b.questions = append(b.questions, b.countQuestions(settings.CountEvery, settings.Overdue)...)
	}
	return b
}

func (b *backlog) describe(name, help string, labels ...string) *prometheus.Desc {
	desc := prometheus.NewDesc(name, help, labels, nil)
	b.descs = append(b.descs, desc)
	return desc
}

func sum(a, b float64) float64    { return a + b }
func larger(a, b float64) float64 { return max(a, b) }

// queuesQuestion asks which queues have something due: cheap, by index.
func (b *backlog) queuesQuestion(every time.Duration) question {
	due := b.describe("belfry_queues_due", "Queues with a message that is due and not leased.")
	oldest := b.describe("belfry_oldest_due_seconds", "How long the message that is due longest has been waiting.")
	return question{
		gauges: []*gauge{{desc: due, join: sum}, {desc: oldest, join: larger}},
		every:  every,
		ask: func(ctx context.Context, s store.Store, now time.Time) ([]float64, error) {
			n, at, err := dueQueues(ctx, s, now)
			return []float64{float64(n), now.Sub(at).Seconds()}, err
		},
	}
}

// dueQueues returns how many queues have something visible, and since when the first of it has been; now, when none has.
func dueQueues(ctx context.Context, s store.Reader, now time.Time) (n int, oldest time.Time, err error) {
	oldest = now
	window := store.Window{Max: store.Floor(now), Limit: queuesPage}
	for range queuesPages {
		hints, err := s.Queues(ctx, window)
		if err != nil {
			return 0, now, err
		}
		for _, h := range hints {
			oldest = store.Earlier(oldest, h.At)
		}
		n += len(hints)
		if len(hints) < queuesPage {
			break
		}
		window.After = hints[len(hints)-1].Queue
	}
	return n, oldest, nil
}

// countQuestions ask for numbers of messages, each on its own, so that a slow one delays no other.
func (b *backlog) countQuestions(every, overdue time.Duration) []question {
	states := b.describe("belfry_messages", "Messages stored, by state.", "state")
	due := b.describe("belfry_messages_due", "Messages not leased whose fire time has come, those that wait for a retry included.")
	late := b.describe("belfry_messages_overdue", "Messages not leased whose fire time has long come.")
	questions := []question{
		countQuestion(every, &gauge{desc: due, join: sum}, func(now time.Time) store.Query {
			return store.Query{States: []store.State{store.Scheduled}, FireMax: store.Floor(now)}
		}),
		countQuestion(every, &gauge{desc: late, join: sum}, func(now time.Time) store.Query {
			return store.Query{States: []store.State{store.Scheduled}, FireMax: store.Floor(now.Add(-overdue))}
		}),
	}
	for _, state := range []store.State{store.Leased, store.Scheduled, store.Dead, store.Canceled, store.Done} {
		g := &gauge{desc: states, labels: []string{state.String()}, join: sum}
		questions = append(questions, countQuestion(every, g, func(time.Time) store.Query {
			return store.Query{States: []store.State{state}}
		}))
	}
	return questions
}

func countQuestion(every time.Duration, g *gauge, query func(now time.Time) store.Query) question {
	return question{
		gauges: []*gauge{g},
		every:  every,
		ask: func(ctx context.Context, s store.Store, now time.Time) ([]float64, error) {
			n, err := s.Count(ctx, query(now))
			return []float64{float64(n)}, err
		},
	}
}

// add lets scrapes ask a store.
func (b *backlog) add(s *measured) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stores = append(b.stores, &polled{measured: s, answers: make([]answer, len(b.questions))})
}

// Describe is prometheus.Collector's.
func (b *backlog) Describe(descs chan<- *prometheus.Desc) {
	for _, desc := range b.descs {
		descs <- desc
	}
}

// Collect is prometheus.Collector's: it asks what is due to be asked, within the budget, and shows all answers. A gauge
// that no store has answered is left out, so that an outage is a gap and not a zero.
func (b *backlog) Collect(metrics chan<- prometheus.Metric) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refresh()
	for i, q := range b.questions {
		for j, g := range q.gauges {
			if value, known := b.joined(i, j, g.join); known {
				metrics <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, value, g.labels...)
			}
		}
	}
	if ahead, known := b.widestSkew(); known {
		metrics <- prometheus.MustNewConstMetric(b.skew, prometheus.GaugeValue, ahead.Seconds())
	}
}

// joined returns one gauge's value over all stores.
func (b *backlog) joined(question, place int, join func(a, b float64) float64) (value float64, known bool) {
	for _, s := range b.stores {
		values := s.answers[question].values
		switch {
		case values == nil:
		case known:
			value = join(value, values[place])
		default:
			value, known = values[place], true
		}
	}
	return value, known
}

// widestSkew returns the skew of the store whose clock differs most.
func (b *backlog) widestSkew() (widest time.Duration, known bool) {
	for _, s := range b.stores {
		if ahead, ok := s.skew.read(); ok {
			if !known || ahead.Abs() > widest.Abs() {
				widest = ahead
			}
			known = true
		}
	}
	return widest, known
}

// refresh asks what is due to be asked. Called with mu held.
func (b *backlog) refresh() {
	ctx, cancel := context.WithTimeout(context.Background(), b.budget)
	defer cancel()
	first := true
	for _, s := range b.stores {
		for i, q := range b.questions {
			if time.Now().Before(s.answers[i].next) {
				continue
			}
			if ctx.Err() != nil {
				return
			}
			s.answers[i].renew(ctx, q, s, first)
			first = false
		}
	}
}

// renew asks a question. How long the answer took decides when it is asked again. A question that came late and had too
// little of the budget left is asked again at the next scrape, when those before it have their answers.
func (a *answer) renew(ctx context.Context, q question, s store.Store, first bool) {
	start := time.Now()
	values, err := q.ask(ctx, s, start)
	if err != nil {
		if !first && ctx.Err() != nil {
			return
		}
		values = nil
	}
	a.values = values
	end := time.Now()
	a.next = end.Add(max(q.every, countPart*end.Sub(start)))
}
