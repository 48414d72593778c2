-- Lists and counts. A list merges streams: each reads the keys of one queue by one index, from a place on. The rows of a
-- page are read by n afterwards.

-- name: live_created(queue, key, id, end, limit, states, kind, group_name, fired, fire_min, fire_max)
SELECT m.created_at, m.id, m.n FROM {t}messages m
WHERE m.queue = :queue AND (m.created_at, m.id) {>=} (:key::bigint, :id::text) AND m.created_at {<=} :end::bigint AND {filters}
ORDER BY m.created_at {asc}, m.id {asc} LIMIT :limit::bigint

-- The three parts of a queue by fire_at: what waits for its first delivery (one stream for each priority), what is
-- leased, and what was rescheduled or waits for a gate.

-- name: live_waiting(queue, priority, key, id, end, limit, states, kind, group_name, fired, fire_min, fire_max)
SELECT m.visible_at, m.id, m.n FROM {t}messages m
WHERE m.queue = :queue AND m.priority = :priority AND (m.visible_at, m.id) {>=} (:key::bigint, :id::text) AND m.visible_at {<=} :end::bigint
AND m.state = 1 AND m.due_at = m.fire_at AND m.waits = 0 AND {filters}
ORDER BY m.visible_at {asc}, m.id {asc} LIMIT :limit::bigint

-- name: live_leased(queue, key, id, end, limit, states, kind, group_name, fired, fire_min, fire_max)
SELECT m.fire_at, m.id, m.n FROM {t}messages m
WHERE m.queue = :queue AND m.state = 2 AND (m.fire_at, m.id) {>=} (:key::bigint, :id::text) AND m.fire_at {<=} :end::bigint AND {filters}
ORDER BY m.fire_at {asc}, m.id {asc} LIMIT :limit::bigint

-- name: live_moved(queue, key, id, end, limit, states, kind, group_name, fired, fire_min, fire_max)
SELECT m.fire_at, m.id, m.n FROM {t}messages m
WHERE m.queue = :queue AND m.state = 1 AND (m.due_at <> m.fire_at OR m.waits > 0)
AND (m.fire_at, m.id) {>=} (:key::bigint, :id::text) AND m.fire_at {<=} :end::bigint AND {filters}
ORDER BY m.fire_at {asc}, m.id {asc} LIMIT :limit::bigint

-- name: live_group(queue, key, id, end, limit, states, kind, group_name, fired, fire_min, fire_max)
SELECT m.created_at, m.id, m.n FROM {t}messages m
WHERE m.queue = :queue AND m.group_name = :group_name AND m.group_name <> ''
AND (m.created_at, m.id) {>=} (:key::bigint, :id::text) AND m.created_at {<=} :end::bigint AND {filters}
ORDER BY m.created_at {asc}, m.id {asc} LIMIT :limit::bigint

-- name: finished_created(queue, key, id, end, limit, states, kind, group_name, fired, fire_min, fire_max)
SELECT m.created_at, m.id, m.n FROM {t}finished m
WHERE m.queue = :queue AND (m.created_at, m.id) {>=} (:key::bigint, :id::text) AND m.created_at {<=} :end::bigint AND {filters}
ORDER BY m.created_at {asc}, m.id {asc} LIMIT :limit::bigint

-- name: finished_fire(queue, key, id, end, limit, states, kind, group_name, fired, fire_min, fire_max)
SELECT m.fire_at, m.id, m.n FROM {t}finished m
WHERE m.queue = :queue AND (m.fire_at, m.id) {>=} (:key::bigint, :id::text) AND m.fire_at {<=} :end::bigint AND {filters}
ORDER BY m.fire_at {asc}, m.id {asc} LIMIT :limit::bigint

-- name: finished_finished(queue, key, id, end, limit, states, kind, group_name, fired, fire_min, fire_max)
SELECT m.finished_at, m.id, m.n FROM {t}finished m
WHERE m.queue = :queue AND (m.finished_at, m.id) {>=} (:key::bigint, :id::text) AND m.finished_at {<=} :end::bigint AND {filters}
ORDER BY m.finished_at {asc}, m.id {asc} LIMIT :limit::bigint

-- name: finished_group(queue, key, id, end, limit, states, kind, group_name, fired, fire_min, fire_max)
SELECT m.created_at, m.id, m.n FROM {t}finished m
WHERE m.queue = :queue AND m.group_name = :group_name AND m.group_name <> ''
AND (m.created_at, m.id) {>=} (:key::bigint, :id::text) AND m.created_at {<=} :end::bigint AND {filters}
ORDER BY m.created_at {asc}, m.id {asc} LIMIT :limit::bigint

-- The children of a parent are few: all their keys are read and sorted by the program.

-- name: live_children(parent, states, kind, group_name, fired, fire_min, fire_max)
SELECT m.created_at, m.fire_at, 0::bigint, m.id, m.queue, m.n FROM {t}messages m
WHERE m.parent = :parent AND m.parent <> '' AND {filters}

-- name: finished_children(parent, states, kind, group_name, fired, fire_min, fire_max)
SELECT m.created_at, m.fire_at, m.finished_at, m.id, m.queue, m.n FROM {t}finished m
WHERE m.parent = :parent AND m.parent <> '' AND {filters}

-- name: live_row(n)
SELECT {live}, m.payload FROM {t}messages m WHERE m.n = :n

-- name: live_row_bare(n)
SELECT {live} FROM {t}messages m WHERE m.n = :n

-- name: finished_row(n)
SELECT {finished}, m.payload FROM {t}finished m WHERE m.n = :n

-- name: finished_row_bare(n)
SELECT {finished} FROM {t}finished m WHERE m.n = :n

-- name: count_live(queue, states, kind, group_name, fired, fire_min, fire_max)
SELECT count(*) FROM {t}messages m WHERE m.queue = :queue AND {filters}

-- name: count_leased(queue)
SELECT count(*) FROM {t}messages WHERE queue = :queue AND state = 2

-- name: count_finished(queue, states, kind, group_name, fired, fire_min, fire_max)
SELECT count(*) FROM {t}finished m WHERE m.queue = :queue AND {filters}

-- name: count_live_group(queue, states, kind, group_name, fired, fire_min, fire_max)
SELECT count(*) FROM {t}messages m
WHERE m.queue = :queue AND m.group_name = :group_name AND m.group_name <> '' AND {filters}

-- name: count_finished_group(queue, states, kind, group_name, fired, fire_min, fire_max)
SELECT count(*) FROM {t}finished m
WHERE m.queue = :queue AND m.group_name = :group_name AND m.group_name <> '' AND {filters}

-- The names of queues, one probe each, from a place on: the priority decides whether the first one itself is included.

-- name: live_queues(queue, priority, prefix)
WITH RECURSIVE q (name) AS (
SELECT (SELECT m.queue FROM {t}messages m WHERE (m.queue, m.priority) > (:queue::text, :priority::bigint) ORDER BY m.queue, m.priority LIMIT 1)
UNION ALL
SELECT (SELECT m.queue FROM {t}messages m WHERE m.queue > q.name ORDER BY m.queue LIMIT 1)
FROM q WHERE starts_with(q.name, :prefix::text)
)
SELECT name FROM q WHERE starts_with(name, :prefix::text)

-- name: finished_queues(queue, priority, prefix)
WITH RECURSIVE q (name) AS (
SELECT (SELECT m.queue FROM {t}finished m WHERE (m.queue, m.finished_at) > (:queue::text, :priority::bigint) ORDER BY m.queue, m.finished_at LIMIT 1)
UNION ALL
SELECT (SELECT m.queue FROM {t}finished m WHERE m.queue > q.name ORDER BY m.queue LIMIT 1)
FROM q WHERE starts_with(q.name, :prefix::text)
)
SELECT name FROM q WHERE starts_with(name, :prefix::text)

-- The queues in order, one row for each priority in use, with its first instant from min on: two probes each.

-- name: window(queue, priority, prefix, min)
WITH RECURSIVE w (queue, priority) AS (
(SELECT m.queue, m.priority FROM {t}messages m WHERE (m.queue, m.priority) > (:queue::text, :priority::bigint)
ORDER BY m.queue, m.priority LIMIT 1)
UNION ALL
SELECT x.queue, x.priority FROM w CROSS JOIN LATERAL (
SELECT m.queue, m.priority FROM {t}messages m WHERE (m.queue, m.priority) > (w.queue, w.priority)
ORDER BY m.queue, m.priority LIMIT 1) x
WHERE starts_with(w.queue, :prefix::text)
)
SELECT w.queue, a.at FROM w CROSS JOIN LATERAL (
SELECT m.visible_at AS at FROM {t}messages m
WHERE m.queue = w.queue AND m.priority = w.priority AND m.visible_at >= :min::bigint ORDER BY m.visible_at LIMIT 1) a
WHERE starts_with(w.queue, :prefix::text)
ORDER BY w.queue
