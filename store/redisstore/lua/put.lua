-- Accepts messages (store.Line.Put). After lib.lua, message.lua and accept.lua.
--
-- ARGV: now; now in microseconds; mode: 1 Overwrite, 2 Atomic, 4 only look whether an atomic batch would be stored;
-- "1" if the names of the queues have just been registered, else "0"; then runs of messages of one queue and priority:
-- queue, priority, how many, and for each: id, head, body ("" if it follows the head), VisibleAt,
-- extra. Extra is "" for a message
-- that is scheduled and has no dedup key, group, parent, gate or history; else the lengths and texts of history, ids and
-- group of the gate.
--
-- Returns an integer, the number of a queue whose name is not registered, when nothing was done; else {results, opened}:
-- results holds, for those messages that were not stored with the version that follows, number from 0 and result: another
-- version, or {reason, id, head, body} of what keeps the message out; {4} for the others of an atomic batch that was not
-- stored. At last comes the version of all others. Opened tells of gates: queue, instant, ….

local now, micros, mode, registered = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4] == '1'
local overwrite, atomic, look = mode % 2 == 1, mode % 4 >= 2, mode >= 4

-- The runs, each with its queue, priority, first argument and number of messages.
local runs = {}
local at = 5
while at <= #ARGV do
  local run = { queue(ARGV[at]), ARGV[at + 1], at + 3, tonumber(ARGV[at + 2]) }
  runs[#runs + 1] = run
  at = at + 3 + 5 * run[4]
end

for i = 1, #runs do
  local run = runs[i]
  local ids = { REGISTERED, VERSION, LINE .. run[2] }
  for j = 1, run[4] do
    ids[j + 3] = ARGV[run[3] + 5 * j - 5]
  end
  load(run[1], ids)
end
for _, q in pairs(queues) do
  if not q.heads[REGISTERED] then
    if not registered then
      return q.n
    end
    q.unregistered = true
  end
end

-- message returns the arguments of a message as accept takes them.
local function message(from)
  return { ARGV[from], ARGV[from + 1], ARGV[from + 2], ARGV[from + 4] }
end

-- each calls f with queue and message of every message, until it returns something; it returns that and the number.
local function each(f)
  local number = 0
  for i = 1, #runs do
    local run = runs[i]
    for j = 1, run[4] do
      local result = f(run[1], message(run[3] + 5 * j - 5))
      if result then
        return result, number
      end
      number = number + 1
    end
  end
end

-- refused_by is the answer to a message that another of its batch keeps out.
local function refused_by(why, m)
  local fields = decode(m[2])
  return { why, m[1], without_payload(m[2], fields, m[3] ~= '' and m[3] or fields.body) }
end

-- foresee tells which message of an atomic batch would be refused, and why. It writes nothing.
local function foresee()
  accepting()
  local stored, holders = {}, {}
  return each(function(q, m)
    local id, new = m[1], decode(m[2])
    local mine, keys = stored[q] or {}, holders[q] or {}
    stored[q], holders[q] = mine, keys
    if mine[id] then
      if not overwrite then
        return refused_by(EXISTS, m)
      end
    else
      local h = head(q, id)
      if h and (overwrite or stands(q, id, h)) then
        if not overwrite then
          return refused(EXISTS, q, id, h)
        elseif in_flight(decode(h), now) then
          return refused(INFLIGHT, q, id, h)
        end
      end
    end
    if holds(new, now) then
      local earlier = keys[new.dedup]
      if earlier and earlier[1] ~= id then
        return refused_by(DUPLICATE, earlier)
      end
      local other, other_head = holder(q, new.dedup, id, now)
      if other and not mine[other] then
        return refused(DUPLICATE, q, other, other_head)
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
  end)
end

if atomic or look then
  local why, number = foresee()
  if why then
    return { { number, why, { ABORTED } }, {} }
  elseif look then
    return { { 0 }, {} }
  end
end

local results, number, common = {}, 0, nil

-- store_run stores the messages of a run: new plain ones at once, the others by accept.
local function store_run(q, priority, from, count)
  local heads, dirty = q.heads, q.dirty
  local v = first_version(q, micros)
  common = common or v
  local version = pack('<d', v)
  local set, visible, new = list(q, 'HSET', 'h'), list(q, 'ZADD', 'z' .. priority), q.new or {}
  local n, z = #set, #visible
  q.new = new
  for i = from, from + 5 * count - 1, 5 do
    local id = ARGV[i]
    if ARGV[i + 4] ~= '' or heads[id] or dirty[id] then
      return i - from
    end
    local h = version .. sub(ARGV[i + 1], 9)
    heads[id], dirty[id] = h, true
    n, z = n + 2, z + 2
    set[n - 1], set[n] = id, h
    if ARGV[i + 2] ~= '' then
      push2(q, 'HSET', 'b', id, ARGV[i + 2])
    end
    visible[z - 1], visible[z] = ARGV[i + 3], id
    new[#new + 1] = id
    if v ~= common then
      results[#results + 1] = number
      results[#results + 1] = v
    end
    number = number + 1
  end
  return 5 * count
end

for i = 1, #runs do
  local run = runs[i]
  local q, from, rest = run[1], run[3], run[4]
  local plain = store_run(q, run[2], from, rest) / 5
  if plain > 0 then
    came(q, run[2])
  end
  from, rest = from + 5 * plain, rest - plain
  if rest > 0 then
    accepting()
  end
  while rest > 0 do
    local result = accept(q, now, micros, overwrite, message(from))
    if result ~= common then
      results[#results + 1] = number
      results[#results + 1] = result
    end
    number, from, rest = number + 1, from + 5, rest - 1
  end
end
for _, q in pairs(queues) do
  if q.unregistered then
    call('HSET', q.at .. 'h', REGISTERED, 1)
  end
  flush(q)
end
results[#results + 1] = common
return { results, opened }
