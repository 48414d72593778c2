-- Single messages: finding, storing, removing.

-- name: find_live(queue, id)
SELECT {live}, m.payload, m.history FROM {t}messages m WHERE m.queue = :queue AND m.id = :id

-- name: lock_live(queue, id)
SELECT {live}, m.payload, m.history FROM {t}messages m WHERE m.queue = :queue AND m.id = :id FOR UPDATE

-- name: find_finished(queue, id)
SELECT {finished}, m.payload, m.history FROM {t}finished m WHERE m.queue = :queue AND m.id = :id

-- name: lock_finished(queue, id)
SELECT {finished}, m.payload, m.history FROM {t}finished m WHERE m.queue = :queue AND m.id = :id FOR UPDATE

-- name: find_trace(queue, id)
SELECT version FROM {t}traces WHERE queue = :queue AND id = :id

-- Who else holds a dedup key.

-- name: holder_live(queue, dedup_key, id)
SELECT {live} FROM {t}messages m
WHERE m.queue = :queue AND m.dedup_key = :dedup_key AND m.dedup_key <> '' AND m.id <> :id

-- name: holder_finished(queue, dedup_key, id, now)
SELECT {finished} FROM {t}finished m
WHERE m.queue = :queue AND m.dedup_key = :dedup_key AND m.dedup_key <> '' AND m.dedup_until > :now AND m.id <> :id
ORDER BY m.dedup_until DESC LIMIT 1

-- Stores a live message unless its id or dedup key is taken. What moves to the finished ones while this waits for it is
-- found by check_new, which comes after.

-- name: insert_new(record, now)
INSERT INTO {t}messages ({message_columns})
SELECT {message_values}
WHERE NOT EXISTS (SELECT 1 FROM {t}finished f WHERE f.queue = :queue::text AND f.id = :id::text)
AND NOT EXISTS (SELECT 1 FROM {t}traces f WHERE f.queue = :queue::text AND f.id = :id::text)
AND NOT (:dedup_key::text <> '' AND EXISTS (
SELECT 1 FROM {t}finished f WHERE f.queue = :queue::text AND f.dedup_key = :dedup_key::text AND f.dedup_key <> '' AND f.dedup_until > :now::bigint))
ON CONFLICT DO NOTHING

-- name: check_new(queue, id, dedup_key, now)
SELECT 1 WHERE EXISTS (SELECT 1 FROM {t}finished f WHERE f.queue = :queue::text AND f.id = :id::text)
OR EXISTS (SELECT 1 FROM {t}traces f WHERE f.queue = :queue::text AND f.id = :id::text)
OR :dedup_key::text <> '' AND EXISTS (
SELECT 1 FROM {t}finished f WHERE f.queue = :queue::text AND f.dedup_key = :dedup_key::text AND f.dedup_key <> '' AND f.dedup_until > :now::bigint)

-- name: insert_live(record)
INSERT INTO {t}messages ({message_columns}) VALUES ({message_values})

-- name: insert_finished(record)
INSERT INTO {t}finished ({finished_columns})
VALUES (:n, :queue, :id, :state, :priority, :due_at, :fire_at, :created_at, :updated_at, :finished_at, :purge_at, :version,
:attempts, :claims, :expires_at,
:kind, :target, :address, :content_type, :group_name, :parent, :dedup_key, :dedup_until,
:retain_done, :retain_dead, :timeout_ns, :last_error, :details, :metadata, :payload, :history)

-- name: delete_live(n)
DELETE FROM {t}messages WHERE n = :n

-- name: delete_finished(n)
DELETE FROM {t}finished WHERE n = :n

-- name: insert_trace(queue, id, purge_at, version)
INSERT INTO {t}traces (queue, id, purge_at, version) VALUES (:queue, :id, :purge_at, :version)
ON CONFLICT (queue, id) DO UPDATE SET purge_at = excluded.purge_at, version = excluded.version

-- name: delete_trace(queue, id)
DELETE FROM {t}traces WHERE queue = :queue AND id = :id
