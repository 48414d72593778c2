-- Purge and docs.

-- name: purgeable(now, limit)
SELECT purge_at, n, body, '' AS queue, '' AS id FROM finished INDEXED BY finished_purge
WHERE purge_at <= :now AND purge_at < 9007199254740991
UNION ALL
SELECT purge_at, 0, 0, queue, id FROM traces WHERE purge_at <= :now
ORDER BY purge_at LIMIT :limit

-- name: doc_get(name)
SELECT version, body FROM docs WHERE name = :name

-- name: doc_put(name, version, body)
INSERT INTO docs (name, version, body) VALUES (:name, :version, :body)
ON CONFLICT (name) DO UPDATE SET version = excluded.version, body = excluded.body

-- name: doc_delete(name)
DELETE FROM docs WHERE name = :name

-- name: doc_list(name, limit)
SELECT name, version, body FROM docs WHERE name >= :name ORDER BY name LIMIT :limit

-- name: revision()
SELECT value FROM counters WHERE name = 'revision'

-- name: raise_revision()
UPDATE counters SET value = value + 1 WHERE name = 'revision'
