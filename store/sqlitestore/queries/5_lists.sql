-- Lists and counts. A list merges streams: each reads the keys of one queue by one index, from a place on. The rows of a
-- page are read by n afterwards.

-- name: live_created(queue, key, id, end, limit, states, kind, group_name, fired, fire_min, fire_max)
SELECT m.created_at, m.id, m.n FROM messages m INDEXED BY messages_created
WHERE m.queue = :queue AND (m.created_at, m.id) {>=} (:key, :id) AND m.created_at {<=} :end AND {filters}
ORDER BY m.created_at {asc}, m.id {asc} LIMIT :limit

-- The three parts of a queue by fire_at: what waits for its first delivery (one stream for each priority), what is
-- leased, and what was rescheduled or waits for a gate.

-- name: live_waiting(queue, priority, key, id, end, limit, states, kind, group_name, fired, fire_min, fire_max)
SELECT m.visible_at, m.id, m.n FROM messages m INDEXED BY messages_claim
WHERE m.queue = :queue AND m.priority = :priority AND (m.visible_at, m.id) {>=} (:key, :id) AND m.visible_at {<=} :end
AND m.state = 1 AND m.due_at = m.fire_at AND m.waits = 0 AND {filters}
ORDER BY m.visible_at {asc}, m.id {asc} LIMIT :limit

-- name: live_leased(queue, key, id, end, limit, states, kind, group_name, fired, fire_min, fire_max)
SELECT m.fire_at, m.id, m.n FROM messages m INDEXED BY messages_leased
WHERE m.queue = :queue AND m.state = 2 AND (m.fire_at, m.id) {>=} (:key, :id) AND m.fire_at {<=} :end AND {filters}
ORDER BY m.fire_at {asc}, m.id {asc} LIMIT :limit

-- name: live_moved(queue, key, id, end, limit, states, kind, group_name, fired, fire_min, fire_max)
SELECT m.fire_at, m.id, m.n FROM messages m INDEXED BY messages_moved
WHERE m.queue = :queue AND m.state = 1 AND (m.due_at <> m.fire_at OR m.waits > 0)
AND (m.fire_at, m.id) {>=} (:key, :id) AND m.fire_at {<=} :end AND {filters}
ORDER BY m.fire_at {asc}, m.id {asc} LIMIT :limit

-- name: live_group(queue, key, id, end, limit, states, kind, group_name, fired, fire_min, fire_max)
SELECT m.created_at, m.id, m.n FROM messages m INDEXED BY messages_group
WHERE m.queue = :queue AND m.group_name = :group_name AND m.group_name <> ''
AND (m.created_at, m.id) {>=} (:key, :id) AND m.created_at {<=} :end AND {filters}
ORDER BY m.created_at {asc}, m.id {asc} LIMIT :limit

-- name: finished_created(queue, key, id, end, limit, states, kind, group_name, fired, fire_min, fire_max)
SELECT m.created_at, m.id, m.n FROM finished m INDEXED BY finished_created
WHERE m.queue = :queue AND (m.created_at, m.id) {>=} (:key, :id) AND m.created_at {<=} :end AND {filters}
ORDER BY m.created_at {asc}, m.id {asc} LIMIT :limit

-- name: finished_fire(queue, key, id, end, limit, states, kind, group_name, fired, fire_min, fire_max)
SELECT m.fire_at, m.id, m.n FROM finished m INDEXED BY finished_fire
WHERE m.queue = :queue AND (m.fire_at, m.id) {>=} (:key, :id) AND m.fire_at {<=} :end AND {filters}
ORDER BY m.fire_at {asc}, m.id {asc} LIMIT :limit

-- name: finished_finished(queue, key, id, end, limit, states, kind, group_name, fired, fire_min, fire_max)
SELECT m.finished_at, m.id, m.n FROM finished m INDEXED BY finished_finished
WHERE m.queue = :queue AND (m.finished_at, m.id) {>=} (:key, :id) AND m.finished_at {<=} :end AND {filters}
ORDER BY m.finished_at {asc}, m.id {asc} LIMIT :limit

-- name: finished_group(queue, key, id, end, limit, states, kind, group_name, fired, fire_min, fire_max)
SELECT m.created_at, m.id, m.n FROM finished m INDEXED BY finished_group
WHERE m.queue = :queue AND m.group_name = :group_name AND m.group_name <> ''
AND (m.created_at, m.id) {>=} (:key, :id) AND m.created_at {<=} :end AND {filters}
ORDER BY m.created_at {asc}, m.id {asc} LIMIT :limit

-- The children of a parent are few: all their keys are read and sorted by the program.

-- name: live_children(parent, states, kind, group_name, fired, fire_min, fire_max)
SELECT m.created_at, m.fire_at, 0, m.id, m.queue, m.n FROM messages m INDEXED BY messages_parent
WHERE m.parent = :parent AND m.parent <> '' AND {filters}

-- name: finished_children(parent, states, kind, group_name, fired, fire_min, fire_max)
SELECT m.created_at, m.fire_at, m.finished_at, m.id, m.queue, m.n FROM finished m INDEXED BY finished_parent
WHERE m.parent = :parent AND m.parent <> '' AND {filters}

-- name: live_row(n)
SELECT {live}, {payload} FROM messages m {join_body} WHERE m.n = :n

-- name: live_row_bare(n)
SELECT {live} FROM messages m {join_body} WHERE m.n = :n

-- name: finished_row(n)
SELECT {finished}, {payload} FROM finished m {join_body} WHERE m.n = :n

-- name: finished_row_bare(n)
SELECT {finished} FROM finished m {join_body} WHERE m.n = :n

-- name: count_live(queue, states, kind, group_name, fired, fire_min, fire_max)
SELECT count(*) FROM messages m INDEXED BY messages_created WHERE m.queue = :queue AND {filters}

-- name: count_leased(queue)
SELECT count(*) FROM messages INDEXED BY messages_leased WHERE queue = :queue AND state = 2

-- name: count_finished(queue, states, kind, group_name, fired, fire_min, fire_max)
SELECT count(*) FROM finished m INDEXED BY finished_finished WHERE m.queue = :queue AND {filters}

-- name: count_live_group(queue, states, kind, group_name, fired, fire_min, fire_max)
SELECT count(*) FROM messages m INDEXED BY messages_group
WHERE m.queue = :queue AND m.group_name = :group_name AND m.group_name <> '' AND {filters}

-- name: count_finished_group(queue, states, kind, group_name, fired, fire_min, fire_max)
SELECT count(*) FROM finished m INDEXED BY finished_group
WHERE m.queue = :queue AND m.group_name = :group_name AND m.group_name <> '' AND {filters}

-- The names of queues, one probe each, from a place on: the priority decides whether the first one itself is included.

-- name: live_queues(queue, priority, prefix)
WITH RECURSIVE q (name) AS (
SELECT (SELECT queue FROM messages INDEXED BY messages_claim WHERE (queue, priority) > (:queue, :priority) ORDER BY queue LIMIT 1)
UNION ALL
SELECT (SELECT m.queue FROM messages m INDEXED BY messages_claim WHERE m.queue > q.name ORDER BY m.queue LIMIT 1)
FROM q WHERE substr(q.name, 1, length(:prefix)) = :prefix
)
SELECT name FROM q WHERE substr(name, 1, length(:prefix)) = :prefix

-- name: finished_queues(queue, priority, prefix)
WITH RECURSIVE q (name) AS (
SELECT (SELECT queue FROM finished INDEXED BY finished_finished WHERE (queue, finished_at) > (:queue, :priority) ORDER BY queue LIMIT 1)
UNION ALL
SELECT (SELECT m.queue FROM finished m INDEXED BY finished_finished WHERE m.queue > q.name ORDER BY m.queue LIMIT 1)
FROM q WHERE substr(q.name, 1, length(:prefix)) = :prefix
)
SELECT name FROM q WHERE substr(name, 1, length(:prefix)) = :prefix

-- The queues in order, one row for each priority in use, with its first instant from min on: two probes each. The plus
-- keeps SQLite from comparing two columns as numbers of any kind, for which it would use the index as far as queue only.

-- name: window(queue, priority, prefix, min)
WITH RECURSIVE w (n) AS (
SELECT (SELECT n FROM messages INDEXED BY messages_claim WHERE (queue, priority) > (:queue, :priority)
ORDER BY queue, priority, visible_at LIMIT 1)
UNION ALL
SELECT (SELECT x.n FROM messages x INDEXED BY messages_claim WHERE (x.queue, x.priority) > (m.queue, +m.priority)
ORDER BY x.queue, x.priority, x.visible_at LIMIT 1)
FROM w CROSS JOIN messages m ON m.n = w.n WHERE substr(m.queue, 1, length(:prefix)) = :prefix
)
SELECT m.queue, (SELECT x.visible_at FROM messages x INDEXED BY messages_claim
WHERE x.queue = m.queue AND x.priority = m.priority AND x.visible_at >= :min ORDER BY x.visible_at LIMIT 1) AS at
FROM w CROSS JOIN messages m ON m.n = w.n
WHERE substr(m.queue, 1, length(:prefix)) = :prefix AND at IS NOT NULL
