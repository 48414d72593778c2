-- Accepts messages that are plain and whose ids are free, which most are (store.Line.Put). It stands alone: what put.lua
-- needs for all others costs more than these take.
--
-- KEYS and ARGV: as for put.lua, without flags and with every extra "".
--
-- Returns -1 when an id is taken or comes twice: nothing was done, put.lua must decide; else what put.lua returns, and a
-- third list, the numbers of the queues whose journal is long (enter.lua).

local call, sub = redis.call, string.sub
local micros, registered = tonumber(ARGV[2]), ARGV[4] == '1'

-- First all is read, since nothing may be written if anything is in the way.
local runs, seen, at = {}, {}, 5
while at <= #ARGV do
  local number, line, n = ARGV[at], '\0z' .. ARGV[at + 1], tonumber(ARGV[at + 2])
  local base, ids, fields = sub(KEYS[2 * tonumber(number) - 1], 1, -2), seen[number] or {}, { '\0r', '\0v', line }
  seen[number] = ids
  for i = 1, n do
    local id = ARGV[at + 5 * i - 2]
    if ids[id] then
      return -1
    end
    ids[id], fields[i + 3] = true, id
  end
  local got = call('HMGET', base .. 'h', unpack(fields))
  if not got[1] and not registered then
    return tonumber(number)
  end
  for i = 4, n + 3 do
    if got[i] then
      return -1
    end
  end
  runs[#runs + 1] = { base, ARGV[at + 1], at + 3, n, got, tonumber(number) }
  at = at + 3 + 5 * n
end

local results, long, number, common = {}, {}, 0, nil
for r = 1, #runs do
  local base, priority, from, count, got = unpack(runs[r])
  local v = math.max(micros, tonumber(got[2] or 0) + 1)
  common = common or v
  local version, set, bodies, line, ids = struct.pack('<d', v), { '\0v', string.format('%.0f', v) }, {}, {}, {}
  if not got[1] then
    set[3], set[4] = '\0r', '1'
  end
  if not got[3] then
    call('ZADD', base .. 'q', priority, priority)
    set[#set + 1] = '\0z' .. priority
    set[#set + 1] = '1'
  end
  local n = #set
  for i = 1, count do
    local id, body = ARGV[from], ARGV[from + 2]
    n = n + 2
    set[n - 1], set[n] = id, version .. sub(ARGV[from + 1], 9)
    if body ~= '' then
      bodies[#bodies + 1] = id
      bodies[#bodies + 1] = body
    end
    line[2 * i - 1], line[2 * i] = ARGV[from + 3], id
    ids[i] = id
    if v ~= common then
      results[#results + 1] = number
      results[#results + 1] = v
    end
    from, number = from + 5, number + 1
  end
  call('HSET', base .. 'h', unpack(set))
  if #bodies > 0 then
    call('HSET', base .. 'b', unpack(bodies))
  end
  call('ZADD', base .. 'z' .. priority, unpack(line))
  if call('RPUSH', base .. 'j', table.concat(ids, '\0')) > (count < 100 and 2048 or 256) then
    long[#long + 1] = runs[r][6]
  end
end
results[#results + 1] = common
return { results, {}, long }
