-- What several queries have in common. {t} is what stands before the names of tables.

-- The columns of a record, as far as metadata; payload and history follow where they are asked for.

-- fragment: live
m.n, m.queue, m.id, m.state, m.priority, m.visible_at, m.due_at, m.fire_at, m.created_at, m.updated_at, m.version,
m.attempts, m.claims, m.owner, m.epoch, m.stop, m.waits, m.watched, 0::bigint, 0::bigint, m.expires_at,
m.kind, m.target, m.address, m.content_type, m.group_name, m.parent, m.dedup_key, m.dedup_until,
m.retain_done, m.retain_dead, m.timeout_ns, m.last_error, m.details, 0::bigint, m.metadata

-- fragment: finished
m.n, m.queue, m.id, m.state, m.priority, 0::bigint, m.due_at, m.fire_at, m.created_at, m.updated_at, m.version,
m.attempts, m.claims, ''::text, 0::bigint, 0::bigint, 0::bigint, 0::bigint, m.finished_at, m.purge_at, m.expires_at,
m.kind, m.target, m.address, m.content_type, m.group_name, m.parent, m.dedup_key, m.dedup_until,
m.retain_done, m.retain_dead, m.timeout_ns, m.last_error, m.details, 0::bigint, m.metadata

-- fragment: message_columns
n, queue, id, state, priority, visible_at, due_at, fire_at, created_at, updated_at, version,
attempts, claims, owner, epoch, stop, waits, watched, expires_at,
kind, target, address, content_type, group_name, parent, dedup_key, dedup_until,
retain_done, retain_dead, timeout_ns, last_error, details, metadata, payload, history

-- fragment: message_values
:n::bigint, :queue::text, :id::text, :state::bigint, :priority::bigint, :visible_at::bigint, :due_at::bigint, :fire_at::bigint,
:created_at::bigint, :updated_at::bigint, :version::bigint,
:attempts::bigint, :claims::bigint, :owner::text, :epoch::bigint, :stop::bigint, :waits::bigint, :watched::bigint, :expires_at::bigint,
:kind::text, :target::text, :address::text, :content_type::text, :group_name::text, :parent::text, :dedup_key::text, :dedup_until::bigint,
:retain_done::bigint, :retain_dead::bigint, :timeout_ns::bigint, :last_error::text, :details::text, :metadata::bytea, :payload::bytea, :history::text

-- fragment: finished_columns
n, queue, id, state, priority, due_at, fire_at, created_at, updated_at, finished_at, purge_at, version,
attempts, claims, expires_at,
kind, target, address, content_type, group_name, parent, dedup_key, dedup_until,
retain_done, retain_dead, timeout_ns, last_error, details, metadata, payload, history

-- What a list or a count selects by. 62 is every state.

-- fragment: filters
(:states::bigint = 62 OR ((:states::bigint >> m.state::int) & 1) = 1)
AND (:kind::text = '' OR m.kind = :kind::text)
AND (:group_name::text = '' OR m.group_name = :group_name::text)
AND (:fired::bigint = 0 OR m.fire_at BETWEEN :fire_min::bigint AND :fire_max::bigint)
