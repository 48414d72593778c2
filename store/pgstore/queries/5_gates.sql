-- Gates. Who becomes a member is locked, so that it does not finish before the gate is closed.

-- name: is_live(queue, id)
SELECT id FROM {t}messages WHERE queue = :queue AND id = :id FOR NO KEY UPDATE

-- name: group_members(queue, group_name)
SELECT id FROM {t}messages WHERE queue = :queue AND group_name = :group_name AND group_name <> '' ORDER BY id FOR NO KEY UPDATE

-- name: watch(queue, id)
UPDATE {t}messages SET watched = 1 WHERE queue = :queue AND id = :id

-- name: insert_gate(queue, member, waiter)
INSERT INTO {t}gates (queue, member, waiter) VALUES (:queue, :member, :waiter)

-- name: waiters(queue, member)
SELECT waiter FROM {t}gates WHERE queue = :queue AND member = :member ORDER BY waiter

-- name: release_waiter(queue, id, now)
UPDATE {t}messages
SET visible_at = CASE waits WHEN 1 THEN due_at ELSE visible_at END, waits = waits - 1, version = version + 1, updated_at = :now
WHERE queue = :queue AND id = :id AND waits > 0

-- name: delete_gates_of_member(queue, member)
DELETE FROM {t}gates WHERE queue = :queue AND member = :member

-- name: delete_gates_of_waiter(queue, waiter)
DELETE FROM {t}gates WHERE queue = :queue AND waiter = :waiter
