-- Gates.

-- name: is_live(queue, id)
SELECT id FROM messages WHERE queue = :queue AND id = :id

-- name: group_members(queue, group_name)
SELECT id FROM messages INDEXED BY messages_group WHERE queue = :queue AND group_name = :group_name AND group_name <> ''

-- name: watch(queue, id)
UPDATE messages SET watched = 1 WHERE queue = :queue AND id = :id

-- name: insert_gate(queue, member, waiter)
INSERT INTO gates (queue, member, waiter) VALUES (:queue, :member, :waiter)

-- name: waiters(queue, member)
SELECT waiter FROM gates WHERE queue = :queue AND member = :member

-- name: release_waiter(queue, id, now)
UPDATE messages
SET visible_at = CASE waits WHEN 1 THEN due_at ELSE visible_at END, waits = waits - 1, version = version + 1, updated_at = :now
WHERE queue = :queue AND id = :id AND waits > 0

-- name: delete_gates_of_member(queue, member)
DELETE FROM gates WHERE queue = :queue AND member = :member

-- name: delete_gates_of_waiter(queue, waiter)
DELETE FROM gates WHERE queue = :queue AND waiter = :waiter
