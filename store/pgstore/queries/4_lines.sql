-- The same, message by message, where it is not simple.

-- name: lock_queue(queue)
SELECT pg_advisory_xact_lock(hashtextextended(:queue::text, 817360124))

-- name: priorities(queue)
{walk}
SELECT p.priority, (SELECT x.visible_at FROM {t}messages x WHERE x.queue = :queue::text AND x.priority = p.priority ORDER BY x.visible_at LIMIT 1)
FROM p WHERE p.priority IS NOT NULL

-- name: pick_due(queue, priority, now, limit)
SELECT {live}, m.payload FROM {t}messages m
WHERE m.queue = :queue AND m.priority = :priority AND m.visible_at <= :now
ORDER BY m.visible_at, m.id LIMIT :limit FOR UPDATE SKIP LOCKED

-- name: pick_ahead(queue, priority, now, horizon, limit)
SELECT {live}, m.payload FROM {t}messages m
WHERE m.queue = :queue AND m.priority = :priority AND m.visible_at > :now AND m.visible_at <= :horizon AND m.state = 1
ORDER BY m.visible_at, m.id LIMIT :limit FOR UPDATE SKIP LOCKED

-- name: pick_key(queue, id, now)
SELECT {live}, m.payload FROM {t}messages m
WHERE m.queue = :queue AND m.id = :id AND m.visible_at <= :now FOR UPDATE SKIP LOCKED

-- name: lease(n, until, owner, epoch, now)
UPDATE {t}messages
SET state = 2, visible_at = :until, owner = :owner, epoch = :epoch, stop = 0, claims = claims + 1, version = version + 1, updated_at = :now
WHERE n = :n

-- name: count_leases(queue, now)
SELECT count(*) FROM {t}messages WHERE queue = :queue AND state = 2 AND visible_at > :now

-- name: rate(queue)
SELECT arrival FROM {t}rates WHERE queue = :queue

-- name: set_rate(queue, arrival)
INSERT INTO {t}rates (queue, arrival) VALUES (:queue, :arrival) ON CONFLICT (queue) DO UPDATE SET arrival = excluded.arrival

-- name: find_lease(queue, id, version)
SELECT n, parent, watched, 0::bigint, history FROM {t}messages
WHERE queue = :queue AND id = :id AND version = :version AND state > 1 FOR UPDATE

-- name: reschedule(n, at, uncount, attempted, history, error, now)
UPDATE {t}messages
SET state = 1, due_at = :at, visible_at = :at, owner = '', epoch = 0, stop = 0,
claims = greatest(0, claims - :uncount::bigint), attempts = attempts + :attempted, history = :history,
last_error = :error, version = version + 1, updated_at = :now
WHERE n = :n

-- name: finish(n, state, purge_at, attempted, history, error, now)
INSERT INTO {t}finished ({finished_columns})
SELECT n, queue, id, :state::bigint, priority, due_at, fire_at, created_at, :now::bigint, :now::bigint, :purge_at::bigint, version + 1,
attempts + :attempted::bigint, claims, expires_at,
kind, target, address, content_type, group_name, parent, dedup_key, dedup_until,
retain_done, retain_dead, timeout_ns, :error::text, details, metadata, payload, :history::text
FROM {t}messages WHERE n = :n

-- name: find_held(queue, id, version, now)
SELECT n, stop FROM {t}messages
WHERE queue = :queue AND id = :id AND version = :version AND state > 1 AND visible_at > :now

-- name: extend(n, until)
UPDATE {t}messages SET visible_at = :until WHERE n = :n

-- name: mark(queue, id, now)
UPDATE {t}messages SET stop = 1 WHERE queue = :queue AND id = :id AND state > 1 AND visible_at > :now

-- name: forfeit(owner, epoch, now)
UPDATE {t}messages
SET state = 1, visible_at = due_at, owner = '', epoch = 0, stop = 0, version = version + 1, updated_at = :now
WHERE state = 2 AND owner = :owner AND epoch < :epoch
