-- Accepts messages (store.Line.Put). After lib.lua and accept.lua.
--
-- ARGV: now; now in microseconds; mode: 1 Overwrite, 2 Atomic, 4 only look whether an atomic batch would be stored;
-- "1" if the names of the queues have just been registered, else "0"; then for each message: queue, id, head, body,
-- VisibleAt, FireAt, CreatedAt, extra: "" or the lengths and texts of history, ids and group of the gate.
--
-- Returns an integer, the number of a queue whose name is not registered, when nothing was done; else a list with one
-- element for each message: its version, or {reason, id, head, body} of what keeps it out; the list of an atomic batch
-- that was not stored holds {4} for the others. A second list tells of gates that opened: queue, instant, ….

local now, micros, mode, registered = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4] == '1'
local overwrite, atomic, look = mode % 2 == 1, mode % 4 >= 2, mode >= 4
local messages, ids = {}, {}
for i = 5, #ARGV, 8 do
  local n, id = tonumber(ARGV[i]), ARGV[i + 1]
  messages[#messages + 1] = { id, ARGV[i + 2], ARGV[i + 3], ARGV[i + 4], ARGV[i + 5], ARGV[i + 6], ARGV[i + 7], queue(n) }
  push(ids, n, id)
end
for n, q in pairs(queues) do
  local m = call('HMGET', q.at .. 'm', 'r', 'v')
  q.first = tonumber(m[2] or 0)
  if not m[1] then
    if not registered then
      return n
    end
    q.unregistered = true
  end
  load(q, ids[n])
end

-- foresee tells which message of an atomic batch would be refused, and why. It writes nothing.
local function foresee()
  local stored, holders = {}, {}
  for i = 1, #messages do
    local m = messages[i]
    local q, id, new = m[8], m[1], decode(m[2])
    local mine, keys = stored[q] or {}, holders[q] or {}
    stored[q], holders[q] = mine, keys
    if mine[id] then
      if not overwrite then
        return i, { EXISTS, id, m[2], sub(m[3], 1, 4 + unpick('<I4', m[3])) }
      end
    else
      local h = head(q, id)
      if h and (overwrite or stands(q, id, h)) then
        local why = obstacle(q, now, overwrite, id, h, decode(h), { dedup = '' })
        if why then
          return i, refused(why, q, id, h)
        end
      end
    end
    if holds(new, now) then
      local earlier = keys[new.dedup]
      if earlier and earlier[1] ~= id then
        return i, { DUPLICATE, earlier[1], earlier[2], sub(earlier[3], 1, 4 + unpick('<I4', earlier[3])) }
      end
      local other, other_head = holder(q, new.dedup, id, now)
      if other and not mine[other] then
        return i, refused(DUPLICATE, q, other, other_head)
      end
    end
    local before = mine[id]
    if before and keys[before.dedup] == before.m then
      keys[before.dedup] = nil
    end
    mine[id] = { m = m, dedup = new.dedup }
    if holds(new, now) then
      keys[new.dedup] = m
    end
  end
end

local results = {}
if atomic or look then
  local at, why = foresee()
  if at or look then
    for i = 1, #messages do
      results[i] = at and { ABORTED } or 0
    end
    if at then
      results[at] = why
    end
    return { results, {} }
  end
end
for i = 1, #messages do
  local m = messages[i]
  results[i] = accept(m[8], now, micros, overwrite, m)
end
for _, q in pairs(queues) do
  if q.unregistered then
    call('HSET', q.at .. 'm', 'r', 1)
  end
  flush(q)
end
return { results, opened }
