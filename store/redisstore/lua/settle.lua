-- Ends leases (store.Line.Settle). After lib.lua and accept.lua.
--
-- ARGV: now; now in microseconds; "1" to tell only what would become of them, else "0"; "1" if the names of the queues
-- of follow-ups have just been registered, else "0"; then for each settlement: queue, id,
-- version, the state it leads to, "1" if the claim is uncounted, At, PurgeAt, error, attempt or "", head and body of
-- the content or "", how many follow-ups, and for each of these: queue, id, head, body, VisibleAt, FireAt, CreatedAt,
-- extra, as for put.lua.
--
-- Returns an integer, the number of a queue whose name is not registered, when nothing was done; else {results, opened}:
-- 0, LOST or DUPLICATE for each settlement; queue and instant of each gate that opened.

local now, micros, look, registered = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3] == '1', ARGV[4] == '1'

-- settle applies one settlement without its follow-ups.
local function settle(q, id, s)
  local h = head(q, id)
  if not h then
    return LOST
  end
  local v, _, priority, flags, held = unpick('<ddi4BB', h)
  if held ~= LEASED or v ~= s.version then
    return LOST
  end
  local removed = s.state >= DONE and s.purge <= now
  if removed and flags == 0 and s.head == '' and not look and not text(q, 'w', id) then
    touch(q, id)
    q.heads[id] = false
    push(q.del, 'h', id)
    push(q.del, 'b', id)
    push(q.rem, 'z' .. priority, id)
    push(q.rem, 'c', id)
    push(q.rem, 'f', id)
    push(q.rem, 'l', id)
    left(q, priority)
    spend(q, v)
    return 0
  end
  local old = decode(h)
  local new, body, history = copy(old), nil, nil
  if s.head ~= '' then
    new = decode(s.head)
    new.v, new.claims, new.created, new.due, new.history, new.waits = old.v, old.claims, old.created, old.due, old.history, old.waits
    body = s.body
  end
  new.state, new.stop, new.epoch, new.owner, new.error = s.state, 0, NOBODY, '', s.error
  if new.dedup ~= old.dedup and holds(new, now) and holder(q, new.dedup, id, now) then
    return DUPLICATE
  end
  if look then
    return 0
  end
  if removed then
    vanish(q, id, old, new.parent, now)
    return 0
  end
  new.v, new.updated = old.v + 1, now
  if s.attempt ~= '' then
    history = old.history > 0 and call('HGET', q.at .. 'a', id) or ''
    history, new.history = append(history, old.history, s.attempt)
    new.attempts = new.attempts + 1
  end
  if s.state >= DONE then
    new.visible, new.finished, new.purge = UNSET, now, s.purge
  else
    new.due, new.visible, new.finished, new.purge = s.at, s.at, UNSET, UNSET
  end
  if s.release then
    new.claims = math.max(0, new.claims - 1)
  end
  write(q, id, old, new, body, history)
  if s.state >= DONE then
    leave(q, id, now)
  end
  return 0
end

-- All settlements are read before the first is applied, so that heads come with one command.
local settlements, ids, registers = {}, {}, {}
local i = 5
while i <= #ARGV do
  local s = { queue = queue(ARGV[i]), id = ARGV[i + 1], version = tonumber(ARGV[i + 2]), state = tonumber(ARGV[i + 3]),
    release = ARGV[i + 4] == '1', at = tonumber(ARGV[i + 5]), purge = tonumber(ARGV[i + 6]), error = ARGV[i + 7],
    attempt = ARGV[i + 8], head = ARGV[i + 9], body = ARGV[i + 10], follow = {} }
  push(ids, s.queue.n, s.id)
  local follows = tonumber(ARGV[i + 11])
  i = i + 12
  for j = 1, follows do
    local q = queue(ARGV[i])
    s.follow[j] = { ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], ARGV[i + 4], ARGV[i + 5], ARGV[i + 6], ARGV[i + 7], q }
    registers[q] = true
    push(ids, q.n, ARGV[i + 1])
    i = i + 8
  end
  settlements[#settlements + 1] = s
end
for q in pairs(registers) do
  if not registered and not call('HGET', q.at .. 'm', 'r') then
    return q.n
  end
end
for q in pairs(registered and registers or {}) do
  call('HSET', q.at .. 'm', 'r', 1)
end
for n, list in pairs(ids) do
  load(queue(n), list)
end

local results = {}
for n = 1, #settlements do
  local s = settlements[n]
  results[n] = settle(s.queue, s.id, s)
  if results[n] == 0 and not look then
    for j = 1, #s.follow do
      accept(s.follow[j][8], now, micros, false, s.follow[j])
    end
  end
end
flush_all()
return { results, opened }
