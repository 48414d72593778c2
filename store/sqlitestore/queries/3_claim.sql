-- The hot path: claim, settle, extend.

-- The priorities in use of a queue, each with the first instant at which something in it is visible: one probe each.

-- name: priorities(queue)
WITH RECURSIVE p (n) AS (
SELECT (SELECT n FROM messages INDEXED BY messages_claim WHERE queue = :queue ORDER BY priority, visible_at LIMIT 1)
UNION ALL
SELECT (SELECT x.n FROM messages x INDEXED BY messages_claim
WHERE x.queue = :queue AND x.priority > m.priority ORDER BY x.priority, x.visible_at LIMIT 1)
FROM p CROSS JOIN messages m ON m.n = p.n
)
SELECT m.priority, m.visible_at FROM p CROSS JOIN messages m ON m.n = p.n

-- name: pick_due(queue, priority, now, limit)
SELECT {live}, {payload} FROM messages m INDEXED BY messages_claim {join_body}
WHERE m.queue = :queue AND m.priority = :priority AND m.visible_at <= :now
ORDER BY m.visible_at, m.id LIMIT :limit

-- name: pick_ahead(queue, priority, now, horizon, limit)
SELECT {live}, {payload} FROM messages m INDEXED BY messages_claim {join_body}
WHERE m.queue = :queue AND m.priority = :priority AND m.visible_at > :now AND m.visible_at <= :horizon AND m.state = 1
ORDER BY m.visible_at, m.id LIMIT :limit

-- name: pick_key(queue, id, now)
SELECT {live}, {payload} FROM messages m INDEXED BY messages_id {join_body}
WHERE m.queue = :queue AND m.id = :id AND m.visible_at <= :now

-- name: lease(n, until, owner, epoch, now)
UPDATE messages
SET state = 2, visible_at = :until, owner = :owner, epoch = :epoch, stop = 0, claims = claims + 1, version = version + 1, updated_at = :now
WHERE n = :n

-- name: count_leases(queue, now)
SELECT count(*) FROM messages INDEXED BY messages_leased WHERE queue = :queue AND state = 2 AND visible_at > :now

-- name: rate(queue)
SELECT arrival FROM rates WHERE queue = :queue

-- name: set_rate(queue, arrival)
INSERT INTO rates (queue, arrival) VALUES (:queue, :arrival) ON CONFLICT (queue) DO UPDATE SET arrival = excluded.arrival

-- name: find_lease(queue, id, version)
SELECT n, parent, watched, body, history FROM messages
WHERE queue = :queue AND id = :id AND version = :version AND state = 2

-- name: reschedule(n, at, uncount, attempted, history, error, now)
UPDATE messages
SET state = 1, due_at = :at, visible_at = :at, owner = '', epoch = 0, stop = 0,
claims = claims - (:uncount AND claims > 0), attempts = attempts + :attempted, history = :history,
last_error = :error, version = version + 1, updated_at = :now
WHERE n = :n

-- Copies a live message to the finished ones; the caller deletes it. OR FAIL, and no function in it, since SQLite would
-- else keep a copy of every page that the row touches, to undo the statement by.

-- name: finish(n, state, purge_at, attempted, history, error, now)
INSERT OR FAIL INTO finished ({finished_columns})
SELECT n, queue, id, :state, priority, due_at, fire_at, created_at, :now, :now, :purge_at, version + 1,
attempts + :attempted, claims, expires_at,
kind, target, address, content_type, group_name, parent, dedup_key, dedup_until,
retain_done, retain_dead, timeout_ns, :error, details, body, metadata, payload, :history
FROM messages WHERE n = :n

-- name: find_held(queue, id, version, now)
SELECT n, stop FROM messages
WHERE queue = :queue AND id = :id AND version = :version AND state = 2 AND visible_at > :now

-- name: extend(n, until)
UPDATE messages SET visible_at = :until WHERE n = :n

-- name: mark(queue, id, now)
UPDATE messages SET stop = 1 WHERE queue = :queue AND id = :id AND state = 2 AND visible_at > :now

-- name: forfeit(owner, epoch, now)
UPDATE messages INDEXED BY messages_leased
SET state = 1, visible_at = due_at, owner = '', epoch = 0, stop = 0, version = version + 1, updated_at = :now
WHERE state = 2 AND owner = :owner AND epoch < :epoch
