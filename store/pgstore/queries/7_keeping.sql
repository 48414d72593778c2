-- Purge and docs.

-- name: purgeable(now, limit)
(SELECT purge_at, n, 0::bigint, ''::text AS queue, ''::text AS id FROM {t}finished
WHERE purge_at <= :now AND purge_at < 9007199254740991 ORDER BY purge_at LIMIT :limit)
UNION ALL
(SELECT purge_at, 0::bigint, 0::bigint, queue, id FROM {t}traces WHERE purge_at <= :now ORDER BY purge_at LIMIT :limit)
ORDER BY purge_at LIMIT :limit

-- name: doc_get(name)
SELECT version, body FROM {t}docs WHERE name = :name

-- name: doc_put(name, version, body)
INSERT INTO {t}docs (name, version, body) VALUES (:name, :version, :body)
ON CONFLICT (name) DO UPDATE SET version = excluded.version, body = excluded.body

-- name: doc_delete(name)
DELETE FROM {t}docs WHERE name = :name

-- name: doc_list(name, limit)
SELECT name, version, body FROM {t}docs WHERE name >= :name ORDER BY name LIMIT :limit

-- name: revision()
SELECT value FROM {t}counters WHERE name = 'revision'

-- name: lock_revision()
SELECT value FROM {t}counters WHERE name = 'revision' FOR UPDATE

-- name: raise_revision()
UPDATE {t}counters SET value = value + 1 WHERE name = 'revision'

-- name: rows()
SELECT nextval('{t}rows')

-- No message has a larger version than this.

-- name: version()
SELECT value FROM {t}counters WHERE name = 'version'

-- name: raise_version(value)
UPDATE {t}counters SET value = greatest(value, :value::bigint) WHERE name = 'version'
