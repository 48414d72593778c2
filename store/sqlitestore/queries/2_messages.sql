-- Single messages: finding, storing, removing.

-- name: find_live(queue, id)
SELECT {live}, {payload}, m.history FROM messages m {join_body} WHERE m.queue = :queue AND m.id = :id

-- name: find_finished(queue, id)
SELECT {finished}, {payload}, m.history FROM finished m {join_body} WHERE m.queue = :queue AND m.id = :id

-- name: find_trace(queue, id)
SELECT version FROM traces WHERE queue = :queue AND id = :id

-- Who else holds a dedup key.

-- name: holder_live(queue, dedup_key, id)
SELECT {live} FROM messages m {join_body}
WHERE m.queue = :queue AND m.dedup_key = :dedup_key AND m.dedup_key <> '' AND m.id <> :id

-- name: holder_finished(queue, dedup_key, id, now)
SELECT {finished} FROM finished m {join_body}
WHERE m.queue = :queue AND m.dedup_key = :dedup_key AND m.dedup_key <> '' AND m.dedup_until > :now AND m.id <> :id
ORDER BY m.dedup_until DESC LIMIT 1

-- Stores a live message unless its id or dedup key is taken. A queue that becomes NULL makes OR IGNORE leave the row out,
-- as a taken id or key does; SELECT … WHERE would say it better, but for that SQLite keeps a copy of every page it touches.

-- name: insert_new(record, now)
INSERT OR IGNORE INTO messages ({message_columns})
VALUES (:n, CASE WHEN
EXISTS (SELECT 1 FROM finished WHERE queue = :queue AND id = :id)
OR EXISTS (SELECT 1 FROM traces WHERE queue = :queue AND id = :id)
OR :dedup_key <> '' AND EXISTS (
SELECT 1 FROM finished WHERE queue = :queue AND dedup_key = :dedup_key AND dedup_key <> '' AND dedup_until > :now)
THEN NULL ELSE :queue END, {message_values})

-- name: insert_live(record)
INSERT INTO messages ({message_columns}) VALUES (:n, :queue, {message_values})

-- name: insert_finished(record)
INSERT INTO finished ({finished_columns})
VALUES (:n, :queue, :id, :state, :priority, :due_at, :fire_at, :created_at, :updated_at, :finished_at, :purge_at, :version,
:attempts, :claims, :expires_at,
:kind, :target, :address, :content_type, :group_name, :parent, :dedup_key, :dedup_until,
:retain_done, :retain_dead, :timeout_ns, :last_error, :details, :body, :metadata, :payload, :history)

-- name: insert_body(n, metadata, payload)
INSERT INTO bodies (n, metadata, payload) VALUES (:n, :metadata, :payload)

-- name: delete_live(n)
DELETE FROM messages WHERE n = :n

-- name: delete_finished(n)
DELETE FROM finished WHERE n = :n

-- name: delete_body(n)
DELETE FROM bodies WHERE n = :n

-- name: insert_trace(queue, id, purge_at, version)
INSERT INTO traces (queue, id, purge_at, version) VALUES (:queue, :id, :purge_at, :version)

-- name: delete_trace(queue, id)
DELETE FROM traces WHERE queue = :queue AND id = :id
