-- Ends leases (store.Line.Settle). After lib.lua, message.lua and accept.lua.
--
-- ARGV: now; now in microseconds; "1" to tell only what would become of them, else "0"; "1" if the names of the queues
-- of follow-ups have just been registered, else "0"; then for each settlement: queue, id, version, the state it leads to,
-- detail, how many follow-ups, and for each of these: queue, id, head, body, extra, as for put.lua. Detail is "" when the
-- message is removed at once and nothing is told of it; else whether the claim is uncounted u8, At d, PurgeAt d, and the
-- lengths and texts of error, attempt, head and body of the content.
--
-- Returns an integer, the number of a queue whose name is not registered, when nothing was done; else {results, opened}:
-- 0, LOST or DUPLICATE for each settlement; queue and instant of each gate that opened.

local now, micros, look, registered = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3] == '1', ARGV[4] == '1'

-- remove ends the lease of a plain message that is not kept. It reports whether it could.
local function remove(q, id, version)
  local h = head(q, id)
  if not h or text(q, 'w', id) then
    return false
  end
  local v, _, priority, flags, state = unpick('<ddi4BB', h)
  if state ~= LEASED or v ~= version or flags ~= 0 and flags ~= 32 then
    return false
  end
  touch(q, id)
  end_plain(q, id, priority, flags == 0)
  left(q, priority)
  spend(q, v)
  return true
end

-- finish is settle for a plain message that is finished and kept, which most are. It makes the new head from parts of the
-- old one (see head.go) and reports whether it could.
local function finish(q, id, s)
  local h = head(q, id)
  if not h or s.state < DONE or s.purge <= now or s.head ~= '' or text(q, 'w', id) then
    return false
  end
  local v, claims, priority, flags, state = unpick('<ddi4BB', h)
  if state ~= LEASED or v ~= s.version or flags ~= 0 and flags ~= 32 then
    return false
  end
  touch(q, id)
  local at = 49 + byte(h, 48)
  local attempts = unpick('<d', h, at + 8)
  local kind = at + 62 + byte(h, at + 61) -- after the kind and its length; group, parent and dedup key are empty
  local body = flags == 32 and sub(h, kind + 7 + unpick('<I4', h, kind + 3)) or call('HGET', q.at .. 'b', id) or ''
  local history, kept_attempts = '', 0
  if s.attempt ~= '' then
    history, kept_attempts = pack('<I4', #s.attempt) .. s.attempt, 1
  end
  h = pack('<ddi4BBBddc8B', v + 1, claims, priority, kept_attempts > 0 and 8 or 0, s.state, 0, UNSET, now, NOBODY, 0)
      .. sub(h, at, at + 7) .. pack('<ddd', attempts + kept_attempts, now, s.purge) .. sub(h, at + 32, at + 59)
      .. string.char(kept_attempts) .. sub(h, at + 61, kind - 1) .. pack('<BBBI4c0', 0, 0, 0, #s.error, s.error)
  q.heads[id] = h
  push2(q, 'HSET', 'h', id, h)
  if flags == 0 then
    push(q, 'HDEL', 'b', id)
  end
  push(q, 'ZREM', line(priority), id)
  left(q, priority)
  push(q, 'SREM', 'l', id)
  push2(q, 'ZADD', 'e' .. s.state, ARGV[1], id)
  if s.purge ~= NEVER then
    push2(q, 'ZADD', 'p', s.purge, id)
  end
  keep(q, id, body, history, s.purge)
  return true
end

-- settle applies one settlement without its follow-ups.
local function settle(q, id, s)
  local h = head(q, id)
  if not h then
    return LOST
  end
  local v, _, _, _, held = unpick('<ddi4BB', h)
  if held ~= LEASED or v ~= s.version then
    return LOST
  end
  local removed = s.state >= DONE and s.purge <= now
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

-- Heads are read before the first settlement is applied, with one command for each queue.
local ids, registers = {}, {}
local i = 5
while i <= #ARGV do
  gather(ids, ARGV[i], ARGV[i + 1])
  local follows = tonumber(ARGV[i + 5])
  i = i + 6
  for j = i, i + 5 * follows - 1, 5 do
    registers[queue(ARGV[j])] = true
    gather(ids, ARGV[j], ARGV[j + 1])
  end
  i = i + 5 * follows
end
for q in pairs(registers) do
  if not registered and not head(q, REGISTERED) then
    return q.n
  end
end
for q in pairs(registered and registers or {}) do
  call('HSET', q.at .. 'h', REGISTERED, 1)
end
for number, theirs in pairs(ids) do
  gather(ids, number, VERSION)
  load(queue(number), theirs)
end

-- apply applies the settlement that begins at an argument.
local function apply(from)
  local q, id, version, state, detail = queue(ARGV[from]), ARGV[from + 1], tonumber(ARGV[from + 2]), tonumber(ARGV[from + 3]), ARGV[from + 4]
  if detail == '' and not look and remove(q, id, version) then
    return 0
  end
  accepting()
  local s = { version = version, state = state, at = UNSET, purge = UNSET, error = '', attempt = '', head = '', body = '' }
  if detail ~= '' then
    local release
    release, s.at, s.purge, s.error, s.attempt, s.head, s.body = unpick('<BddI4c0I4c0I4c0I4c0', detail)
    s.release = release == 1
  end
  if not look and finish(q, id, s) then
    return 0
  end
  return settle(q, id, s)
end

local results = {}
i = 5
while i <= #ARGV do
  local n = #results + 1
  results[n] = apply(i)
  local follows = tonumber(ARGV[i + 5])
  i = i + 6
  for j = i, i + 5 * follows - 1, 5 do
    if results[n] == 0 and not look then
      accepting()
      accept(queue(ARGV[j]), now, micros, false,
        { ARGV[j + 1], ARGV[j + 2], ARGV[j + 3], ARGV[j + 4] })
    end
  end
  i = i + 5 * follows
end
flush_all()
return { results, opened }
