-- Leases messages (store.Line.Claim). After lib.lua, message.lua and less.lua.
--
-- ARGV: now; now in microseconds; the end of what is ahead, at least now; the lease's end; the incarnation as eight
-- bytes; the owner; how many bytes of messages are enough; how many addresses, then queue and id of each; then for each
-- queue to claim from: queue, limit, concurrency, microseconds of the rate, burst.
--
-- Returns {TIME, messages, told, keyed}: messages holds id, head and body of each ("" if it follows the head), in the order of the queues; told holds
-- for each queue how many of them are its own, the next instant, whether it was limited, the microsecond at which the
-- rate allows the next claim or 0, and 1 if there may be more to take that was not taken because of the bytes; keyed
-- holds queue, id, head and body of what was claimed by address.

local now, micros, horizon, lease_end = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local enough = tonumber(ARGV[7])
local UNTIL = ARGV[4]
-- What a claim makes of the middle of every head: state, stop mark, VisibleAt, UpdatedAt, incarnation, owner.
local LEASE = pack('<BBddc8Bc0', LEASED, 0, lease_end, now, ARGV[5], #ARGV[6], ARGV[6])

-- The field of the hash of heads that has the theoretical arrival time of the queue's rate, in microseconds.
local ARRIVAL = '\0t'

local messages, keyed, bytes = {}, {}, 0

-- bodies_of returns the bodies that are not with their heads, of the ids from first to last, by id.
local function bodies_of(q, ids, first, last)
  local apart, bodies = {}, {}
  for i = first, last do
    if byte(q.heads[ids[i]], 21) < 32 then
      apart[#apart + 1] = ids[i]
    end
  end
  if #apart > 0 then
    local got = call('HMGET', q.at .. 'b', unpack(apart))
    for i = 1, #apart do
      bodies[apart[i]] = got[i]
    end
  end
  return bodies
end

-- lease takes messages of a queue, at most a hundred of the ids from the first on, and appends id, head and body of each
-- to out. Priorities has that of each id.
local function lease(q, ids, priorities, first, out)
  local last = math.min(first + 99, #ids)
  local heads, bodies = q.heads, bodies_of(q, ids, first, last)
  local set, leased, visible, priority, z = list(q, 'HSET', 'h'), list(q, 'SADD', 'l'), nil, nil, 0
  local s, l, n = #set, #leased, #out
  for i = first, last do
    local id = ids[i]
    local h, body = heads[id], bodies[id] or ''
    local v, claims = unpick('<dd', h)
    h = pack('<dd', v + 1, claims + 1) .. sub(h, 17, 21) .. LEASE .. sub(h, 49 + byte(h, 48))
    heads[id] = h
    if priorities[i] ~= priority then
      priority = priorities[i]
      visible = list(q, 'ZADD', 'z' .. priority)
      z = #visible
    end
    s, l, z, n = s + 2, l + 1, z + 2, n + 3
    set[s - 1], set[s] = id, h
    visible[z - 1], visible[z] = UNTIL, id
    leased[l] = id
    out[n - 2], out[n - 1], out[n] = id, h, body
    bytes = bytes + #h + #body
  end
  q.dirty[ids[first]] = true
end

-- lease_all leases as many of the messages as their bytes allow, and tells how many and whether some were left.
local function lease_all(q, ids, priorities)
  for i = 1, #ids, 100 do
    if i > 1 and bytes > enough then
      return i - 1, 1
    end
    lease(q, ids, priorities, i, messages)
  end
  return #ids, 0
end

-- present leaves out ids without a head, which a server that evicts has thrown away, and takes them out of their lines.
local function present(q, ids, priorities)
  load(q, ids)
  local n = 0
  for i = 1, #ids do
    local id, priority = ids[i], priorities[i]
    ids[i], priorities[i] = nil, nil
    if q.heads[id] then
      n = n + 1
      ids[n], priorities[n] = id, priority
    else
      push(q, 'ZREM', 'z' .. priority, id)
      q.dirty[id] = true
      left(q, priority)
    end
  end
  return ids, priorities
end

-- due returns the first messages of a queue that are visible, at most n.
local function due(q, lines, n)
  local ids, priorities = {}, {}
  for i = 1, #lines do
    if #ids >= n then
      break
    end
    local found = call('ZRANGEBYSCORE', q.at .. 'z' .. lines[i], '-inf', now, 'LIMIT', 0, n - #ids)
    for j = 1, #found do
      ids[#ids + 1] = found[j]
      priorities[#priorities + 1] = lines[i]
    end
  end
  return present(q, ids, priorities)
end

-- ahead returns what falls due until the horizon, at most n, whatever its priority.
local function ahead(q, lines, n)
  local soon = {}
  for i = 1, #lines do
    local set, from, found = q.at .. 'z' .. lines[i], 0, 0
    repeat
      local got = call('ZRANGEBYSCORE', set, '(' .. ARGV[1], horizon, 'WITHSCORES', 'LIMIT', from, n)
      local ids = {}
      for j = 1, #got, 2 do
        ids[#ids + 1] = got[j]
      end
      load(q, ids)
      for j = 1, #ids do
        local h = q.heads[ids[j]]
        if found < n and h and byte(h, 22) == SCHEDULED then
          soon[#soon + 1] = { ids[j], tonumber(got[2 * j]), lines[i] }
          found = found + 1
        end
      end
      from = from + #ids
    until #ids < n or found == n
  end
  if #lines > 1 then
    table.sort(soon, function(a, b)
      if a[2] ~= b[2] then
        return a[2] < b[2]
      end
      return less(a[1], b[1])
    end)
  end
  local ids, priorities = {}, {}
  for i = 1, math.min(n, #soon) do
    ids[i], priorities[i] = soon[i][1], soon[i][3]
  end
  return ids, priorities
end

-- next_of returns the earliest instant at which something in the queue is visible.
local function next_of(q, lines)
  local first = NEVER
  for i = 1, #lines do
    local got = call('ZRANGE', q.at .. 'z' .. lines[i], 0, 0, 'WITHSCORES')
    local at = tonumber(got[2] or NEVER)
    if at < first then
      first = at
    end
  end
  return first
end

-- live_leases counts the leases of a queue that have not run out.
local function live_leases(q)
  local ids, n = call('SMEMBERS', q.at .. 'l'), 0
  load(q, ids)
  for i = 1, #ids do
    local h = q.heads[ids[i]]
    if h and unpick('<d', h, 24) > now then
      n = n + 1
    end
  end
  return n
end

if ARGV[8] ~= '0' then
  whole()
end
local at = 9 + 2 * tonumber(ARGV[8])
for i = 9, at - 1, 2 do
  local q, id = queue(ARGV[i]), ARGV[i + 1]
  local h = head(q, id)
  if h then
    local m = decode(h)
    if is_live(m) and m.visible <= now then
      touch(q, id)
      keyed[#keyed + 1] = q.n
      lease(q, { id }, { m.priority }, 1, keyed)
    end
  end
end
flush_all()

local told = {}
for i = at, #ARGV, 5 do
  local q, limit, concurrency, every, burst = queue(ARGV[i]), tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2]), tonumber(ARGV[i + 3]), tonumber(ARGV[i + 4])
  local slots, by_rate, arrival = limit, false, nil
  if concurrency > 0 then
    slots = math.min(slots, math.max(0, concurrency - live_leases(q)))
  end
  if every > 0 then
    arrival = tonumber(head(q, ARRIVAL) or -NEVER)
    local room = math.max(0, math.floor((micros + burst * every - math.max(micros, arrival)) / every))
    if room < slots then
      slots, by_rate = room, true
    end
  end
  local lines = call('ZRANGE', q.at .. 'q', 0, -1)
  local taken, more = 0, 0
  if slots > 0 and bytes > enough then
    more = 1
  elseif slots > 0 and #lines > 0 then
    taken, more = lease_all(q, due(q, lines, slots))
    if taken < slots and horizon > now and more == 0 then
      local n
      n, more = lease_all(q, ahead(q, lines, slots - taken))
      taken = taken + n
    end
    flush(q)
  end
  if every > 0 and taken > 0 then
    arrival = math.max(micros, arrival) + taken * every
    q.heads[ARRIVAL] = string.format('%.0f', arrival)
    call('HSET', q.at .. 'h', ARRIVAL, q.heads[ARRIVAL])
  end
  local first, limited, free = next_of(q, lines), 0, 0
  if slots < limit and first <= now then
    limited = 1
    if by_rate then
      free = arrival + every - burst * every
    end
  end
  local n = #told
  told[n + 1], told[n + 2], told[n + 3], told[n + 4], told[n + 5] = taken, first, limited, free, more
end
return { call('TIME'), messages, told, keyed }
