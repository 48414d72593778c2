-- What several queries have in common. INDEXED BY makes a query fail rather than scan, should a plan ever change.

-- The columns of a record, as far as metadata; payload and history follow where they are asked for.

-- fragment: live
m.n, m.queue, m.id, m.state, m.priority, m.visible_at, m.due_at, m.fire_at, m.created_at, m.updated_at, m.version,
m.attempts, m.claims, m.owner, m.epoch, m.stop, m.waits, m.watched, 0, 0, m.expires_at,
m.kind, m.target, m.address, m.content_type, m.group_name, m.parent, m.dedup_key, m.dedup_until,
m.retain_done, m.retain_dead, m.timeout_ns, m.last_error, m.details, m.body, coalesce(m.metadata, b.metadata)

-- fragment: finished
m.n, m.queue, m.id, m.state, m.priority, 0, m.due_at, m.fire_at, m.created_at, m.updated_at, m.version,
m.attempts, m.claims, '', 0, 0, 0, 0, m.finished_at, m.purge_at, m.expires_at,
m.kind, m.target, m.address, m.content_type, m.group_name, m.parent, m.dedup_key, m.dedup_until,
m.retain_done, m.retain_dead, m.timeout_ns, m.last_error, m.details, m.body, coalesce(m.metadata, b.metadata)

-- fragment: payload
coalesce(m.payload, b.payload)

-- fragment: join_body
LEFT JOIN bodies b ON m.body = 1 AND b.n = m.n

-- fragment: message_columns
n, queue, id, state, priority, visible_at, due_at, fire_at, created_at, updated_at, version,
attempts, claims, owner, epoch, stop, waits, watched, expires_at,
kind, target, address, content_type, group_name, parent, dedup_key, dedup_until,
retain_done, retain_dead, timeout_ns, last_error, details, body, metadata, payload, history

-- The values of those after n and queue.

-- fragment: message_values
:id, :state, :priority, :visible_at, :due_at, :fire_at, :created_at, :updated_at, :version,
:attempts, :claims, :owner, :epoch, :stop, :waits, :watched, :expires_at,
:kind, :target, :address, :content_type, :group_name, :parent, :dedup_key, :dedup_until,
:retain_done, :retain_dead, :timeout_ns, :last_error, :details, :body, :metadata, :payload, :history

-- fragment: finished_columns
n, queue, id, state, priority, due_at, fire_at, created_at, updated_at, finished_at, purge_at, version,
attempts, claims, expires_at,
kind, target, address, content_type, group_name, parent, dedup_key, dedup_until,
retain_done, retain_dead, timeout_ns, last_error, details, body, metadata, payload, history

-- What a list or a count selects by; a condition that does not apply is not looked up in the row. 62 is every state.

-- fragment: filters
(:states = 62 OR (:states >> m.state) & 1)
AND (:kind = '' OR m.kind = :kind)
AND (:group_name = '' OR m.group_name = :group_name)
AND (:fired = 0 OR m.fire_at BETWEEN :fire_min AND :fire_max)
