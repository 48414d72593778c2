-- Changes messages from outside (store.Line.Replace). After lib.lua and message.lua.
--
-- ARGV: now; then for each change: queue, id, mode (0 Swap, 1 Revoke, 2 Mark), version, head, body.
--
-- Returns {results, opened}: 0, MISSING, CONFLICT, INFLIGHT or DUPLICATE for each; queue and instant of each gate that
-- opened.

whole()
local now = tonumber(ARGV[1])

-- mark asks the holder of a live lease to stop. It changes nothing else, the version included.
local function mark(q, id, old)
  if not in_flight(old, now) then
    return CONFLICT
  end
  if old.stop == 0 then
    local new = copy(old)
    new.stop = 1
    write(q, id, old, new)
  end
  return 0
end

local function replace(q, id, mode, version, h, body)
  local old_head = head(q, id)
  local old = old_head and decode(old_head)
  if not old or old.state == 0 or old.state >= DONE and not kept(q, id) then
    return MISSING
  elseif mode == 2 then
    return mark(q, id, old)
  elseif mode == 0 and in_flight(old, now) then
    return INFLIGHT
  elseif old.v ~= version then
    return CONFLICT
  end
  local new = decode(h)
  local held = old.dedup == new.dedup and holds(old, now)
  if holds(new, now) and not held and holder(q, new.dedup, id, now) then
    return DUPLICATE
  end
  local finished = new.state >= DONE
  if finished and new.purge <= now then
    vanish(q, id, old, new.parent, now)
    return 0
  end
  new.v, new.updated, new.created, new.history, new.waits = old.v + 1, now, old.created, old.history, old.waits
  if finished then
    abandon(q, id, old)
    new.waits, new.visible = 0, UNSET
  elseif new.waits > 0 then
    new.visible = NEVER
  end
  write(q, id, old, new, body)
  if finished then
    leave(q, id, now)
  end
  return 0
end

local ids, results = {}, {}
for i = 2, #ARGV, 6 do
  gather(ids, ARGV[i], ARGV[i + 1])
end
for number, theirs in pairs(ids) do
  load(queue(number), theirs)
end
for i = 2, #ARGV, 6 do
  results[#results + 1] = replace(queue(ARGV[i]), ARGV[i + 1], tonumber(ARGV[i + 2]), tonumber(ARGV[i + 3]), ARGV[i + 4], ARGV[i + 5])
end
flush_all()
return { results, opened }
