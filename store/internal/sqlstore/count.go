package sqlstore

import (
	"context"

	"github.com/belfryhq/belfry/store"
)

// Count returns how many messages match. It reads one index entry for each message of the queues, and its row too where
// the query asks for more than queue, group and states.
func (s *Store) Count(ctx context.Context, query store.Query) (int64, error) {
	query.Order = store.ByCreated // ByFinished would select
	f := newFilter(&query)
	var n int64
	err := s.read(ctx, "count", func(w *work) error {
		n = 0
		if query.Parent != "" {
			children, err := w.children(&query, f)
			n = int64(len(children))
			return err
		}
		if f.live() {
			if err := w.eachQueue(w.q.liveQueues, &query, func(queue string) (int64, error) { return w.countLive(queue, f) }, &n); err != nil {
				return err
			}
		}
		if f.finished() {
			return w.eachQueue(w.q.finishedQueues, &query, func(queue string) (int64, error) { return w.countFinished(queue, f) }, &n)
		}
		return nil
	})
	return n, err
}

// eachQueue adds up what count returns for the queues of the query.
func (w *work) eachQueue(list *Query, query *store.Query, count func(queue string) (int64, error), sum *int64) error {
	queues, err := w.queues(list, query)
	for _, queue := range queues {
		n, err := count(queue)
		if err != nil {
			return err
		}
		*sum += n
	}
	return err
}

func (w *work) countLive(queue string, f *filter) (int64, error) {
	if f.group != "" {
		return w.count(w.q.countLiveGroup, queue, f.part(liveStates))
	}
	if !f.plain() || f.states&liveStates == liveStates {
		return w.count(w.q.countLive, queue, f.part(liveStates))
	}
	// Of the two states the leased are in an index of their own.
	var leased int64
	if _, err := w.first(w.q.countLeased, []any{&leased}, queue); err != nil || f.states&(1<<store.Leased) != 0 {
		return leased, err
	}
	all, err := w.count(w.q.countLive, queue, (&filter{states: allStates}))
	return all - leased, err
}

func (w *work) countFinished(queue string, f *filter) (int64, error) {
	if f.group != "" {
		return w.count(w.q.countFinishedGroup, queue, f.part(finishedStates))
	}
	return w.count(w.q.countFinished, queue, f.part(finishedStates))
}

func (w *work) count(q *Query, queue string, f *filter) (int64, error) {
	var n int64
	_, err := w.first(q, []any{&n}, append([]any{queue}, f.args()...)...)
	return n, err
}
