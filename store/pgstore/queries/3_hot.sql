-- The hot path, a batch in one statement.

-- fragment: walk
WITH RECURSIVE p (priority) AS (
SELECT (SELECT priority FROM {t}messages WHERE queue = :queue::text ORDER BY priority LIMIT 1)
UNION ALL
SELECT (SELECT x.priority FROM {t}messages x WHERE x.queue = :queue::text AND x.priority > p.priority ORDER BY x.priority LIMIT 1)
FROM p WHERE p.priority IS NOT NULL
)

-- Takes what is due of a queue, priority by priority (l, each with the instant to begin at), and fills what is left of the
-- limit with what falls due until the horizon. Rows are locked one by one as they are read, and what others have locked is
-- left out.

-- fragment: claim
due AS MATERIALIZED (
SELECT m.n, m.visible_at FROM l CROSS JOIN LATERAL (
SELECT x.n, x.visible_at FROM {t}messages x
WHERE x.queue = :queue::text AND x.priority = l.priority AND x.visible_at >= l.since AND x.visible_at <= :now::bigint
ORDER BY x.visible_at, x.id LIMIT :limit::bigint FOR UPDATE SKIP LOCKED
) m LIMIT :limit::bigint
), ahead AS MATERIALIZED (
SELECT m.n, m.visible_at, m.id FROM l CROSS JOIN LATERAL (
SELECT x.n, x.visible_at, x.id FROM {t}messages x
WHERE x.queue = :queue::text AND x.priority = l.priority AND x.visible_at > :now::bigint AND x.visible_at <= :horizon::bigint AND x.state = 1
AND :horizon::bigint > :now::bigint
ORDER BY x.visible_at, x.id LIMIT greatest(0, :limit::bigint - (SELECT count(*) FROM due)) FOR UPDATE SKIP LOCKED
) m
ORDER BY m.visible_at, m.id LIMIT greatest(0, :limit::bigint - (SELECT count(*) FROM due))
), picked AS MATERIALIZED (
SELECT n, visible_at AS was, 0::bigint AS ahead, row_number() OVER () AS place FROM due
UNION ALL
SELECT n, visible_at, 1, row_number() OVER () FROM ahead
), taken AS (
UPDATE {t}messages m
SET state = 2, visible_at = :until::bigint, owner = :owner::text, epoch = :epoch::bigint, stop = 0, claims = m.claims + 1,
version = greatest(m.version + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint), updated_at = :now::bigint
FROM picked WHERE m.n = picked.n
RETURNING picked.place, picked.ahead, picked.was, m.*
)
SELECT {live}, m.payload, m.ahead, m.was FROM taken m ORDER BY m.ahead, m.place

-- name: claim_set(queue, limit, now, horizon, until, owner, epoch)
{walk}, l AS (SELECT priority, (-9223372036854775808)::bigint AS since FROM p WHERE priority IS NOT NULL), {claim}

-- The same without a walk over what is gone, where it is known at which instants what is left begins.

-- name: claim_from(queue, limit, now, horizon, until, owner, epoch, priorities, since)
WITH l AS (SELECT * FROM unnest(:priorities::bigint[], :since::bigint[]) AS l (priority, since)), {claim}

-- The first instant at which something in the queue is visible.

-- name: next(queue)
{walk}
SELECT min((SELECT x.visible_at FROM {t}messages x WHERE x.queue = :queue::text AND x.priority = p.priority ORDER BY x.visible_at LIMIT 1))
FROM p WHERE p.priority IS NOT NULL

-- name: next_from(queue, priorities, since)
SELECT l.priority, (SELECT x.visible_at FROM {t}messages x
WHERE x.queue = :queue::text AND x.priority = l.priority AND x.visible_at >= l.since ORDER BY x.visible_at LIMIT 1)
FROM unnest(:priorities::bigint[], :since::bigint[]) AS l (priority, since)

-- name: claim_end()
SELECT value, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint FROM {t}counters WHERE name = 'revision'

-- name: insert_set(record, now)
INSERT INTO {t}messages ({message_columns})
SELECT {message_columns} FROM unnest(:n::bigint[], :queue::text[], :id::text[], :state::bigint[], :priority::bigint[], :visible_at::bigint[],
:due_at::bigint[], :fire_at::bigint[], :created_at::bigint[], :updated_at::bigint[], :version::bigint[],
:attempts::bigint[], :claims::bigint[], :owner::text[], :epoch::bigint[], :stop::bigint[], :waits::bigint[], :watched::bigint[], :expires_at::bigint[],
:kind::text[], :target::text[], :address::text[], :content_type::text[], :group_name::text[], :parent::text[], :dedup_key::text[], :dedup_until::bigint[],
:retain_done::bigint[], :retain_dead::bigint[], :timeout_ns::bigint[], :last_error::text[], :details::text[], :metadata::bytea[], :payload::bytea[],
:history::text[]) AS r ({message_columns})
WHERE NOT EXISTS (SELECT 1 FROM {t}finished f WHERE f.queue = r.queue AND f.id = r.id)
AND NOT EXISTS (SELECT 1 FROM {t}traces f WHERE f.queue = r.queue AND f.id = r.id)
AND (r.dedup_key = '' OR NOT EXISTS (
SELECT 1 FROM {t}finished f WHERE f.queue = r.queue AND f.dedup_key = r.dedup_key AND f.dedup_key <> '' AND f.dedup_until > :now::bigint))
ON CONFLICT DO NOTHING
RETURNING n

-- Divides by zero, which undoes the transaction, when a message that was just stored has an id or a dedup key that one which
-- was finished meanwhile has too: insert_set had to wait for that, and did not see it.

-- name: check_set(queue, id, dedup_key, now)
SELECT 1 / (CASE WHEN EXISTS (
SELECT 1 FROM unnest(:queue::text[], :id::text[], :dedup_key::text[]) AS r (queue, id, dedup_key)
WHERE (EXISTS (SELECT 1 FROM {t}finished f WHERE f.queue = r.queue AND f.id = r.id)
OR EXISTS (SELECT 1 FROM {t}traces f WHERE f.queue = r.queue AND f.id = r.id)
OR r.dedup_key <> '' AND EXISTS (
SELECT 1 FROM {t}finished f WHERE f.queue = r.queue AND f.dedup_key = r.dedup_key AND f.dedup_key <> '' AND f.dedup_until > :now::bigint))
AND EXISTS (SELECT 1 FROM {t}messages m WHERE m.queue = r.queue AND m.id = r.id)
) THEN 0 ELSE 1 END)

-- A lease that is lost with the server's power is taken again by somebody: claims do not wait for the disk. The lease that
-- follows has another version, and so another token, since that is no less than the server's clock in microseconds.

-- name: claim_begin()
SELECT set_config('synchronous_commit', 'off', true)

-- Leased messages are found by their ids: "state > 1" keeps PostgreSQL from the index of leased ones, which is by fire_at.

-- Ends leases, of those messages that concern no others: nobody waits for them, and they leave no trace. It returns the
-- places of the settlements that it applied. uncount is for releases; at is zero for what finishes.

-- name: settle_set(place, queue, id, version, state, at, purge_at, uncount, attempted, line, error, now)
WITH t AS MATERIALIZED (
SELECT * FROM unnest(:place::bigint[], :queue::text[], :id::text[], :version::bigint[], :state::bigint[], :at::bigint[], :purge_at::bigint[],
:uncount::bigint[], :attempted::bigint[], :line::text[], :error::text[])
AS t (place, queue, id, version, state, at, purge_at, uncount, attempted, line, error)
), l AS MATERIALIZED (
SELECT m.n, t.place, t.state, t.at, t.purge_at, t.uncount, t.attempted, t.error,
CASE WHEN t.line = '' THEN m.history
WHEN length(m.history) - length(replace(m.history, E'\n', '')) >= 20 THEN substring(m.history FROM position(E'\n' IN m.history) + 1) || t.line
ELSE m.history || t.line END AS history
FROM t JOIN {t}messages m ON m.queue = t.queue AND m.id = t.id
WHERE m.version = t.version AND m.state > 1 AND m.watched = 0 AND (t.state = 1 OR t.purge_at > :now::bigint OR m.parent = '')
FOR UPDATE OF m
), stay AS (
UPDATE {t}messages m
SET state = 1, due_at = l.at, visible_at = l.at, owner = '', epoch = 0, stop = 0,
claims = greatest(0, m.claims - l.uncount), attempts = m.attempts + l.attempted, history = l.history,
last_error = l.error, version = m.version + 1, updated_at = :now::bigint
FROM l WHERE m.n = l.n AND l.state = 1
), gone AS (
DELETE FROM {t}messages m USING l WHERE m.n = l.n AND l.state <> 1
RETURNING m.*, l.state AS end_state, l.purge_at, l.attempted, l.history AS end_history, l.error
), kept AS (
INSERT INTO {t}finished ({finished_columns})
SELECT n, queue, id, end_state, priority, due_at, fire_at, created_at, :now::bigint, :now::bigint, purge_at, version + 1,
attempts + attempted, claims, expires_at,
kind, target, address, content_type, group_name, parent, dedup_key, dedup_until,
retain_done, retain_dead, timeout_ns, error, details, metadata, payload, end_history
FROM gone WHERE purge_at > :now::bigint
)
SELECT place FROM l

-- name: extend_set(place, queue, id, version, now, until)
UPDATE {t}messages m SET visible_at = :until::bigint
FROM unnest(:place::bigint[], :queue::text[], :id::text[], :version::bigint[]) AS t (place, queue, id, version)
WHERE m.queue = t.queue AND m.id = t.id AND m.version = t.version AND m.state > 1 AND m.visible_at > :now::bigint
RETURNING t.place, m.stop
