-- Lists or counts messages of one queue, a stretch at a time (store.Reader.List and Count). After lib.lua, message.lua and less.lua.
--
-- A query that an index narrows to few messages (by parent, group, state or FireAt) reads all of those. Any other walks
-- along the index of its order and looks at each message's head.
--
-- ARGV: "1" to count, else "0"; the index to walk: c, f or e; "1" for descending, else "0"; whether to begin after a place:
-- 0 at the beginning, 1 after it, 2 with it; the place's key and id; how many matches are wanted; how many messages are
-- few; states that are asked for, one digit each; kind, parent, group; the least and the greatest FireAt or "".
--
-- Returns {2}: ask again, the journal was long; {1, rows}: all that matches, in no order; or {0, rows, key, id}: what matches in the next stretch, in order, and
-- its last place, whose id is "" at the end. Rows are key and id of each; in a count their number.

whole()
local q, count, order, desc = queue('1'), ARGV[1] == '1', ARGV[2], ARGV[3] == '1'
local from, from_key, from_id = tonumber(ARGV[4]), ARGV[5], ARGV[6]
local want, few = tonumber(ARGV[7]), tonumber(ARGV[8])
local states, kind, parent, group, least, greatest = ARGV[9], ARGV[10], ARGV[11], ARGV[12], ARGV[13], ARGV[14]
local ranged = least ~= '' or greatest ~= ''
local min, max = least ~= '' and least or '-inf', greatest ~= '' and greatest or '+inf'
local least_at, greatest_at = tonumber(least ~= '' and least or UNSET), tonumber(greatest ~= '' and greatest or NEVER)

local asked, finished, live = {}, '', false
for i = 1, #states do
  local s = tonumber(sub(states, i, i))
  asked[s] = true
  if s >= DONE then finished = finished .. s else live = true end
end

local function matches(m)
  return m and asked[m.state] and (kind == '' or m.kind == kind) and (parent == '' or m.parent == parent)
      and (group == '' or m.group == group) and m.fire >= least_at and m.fire <= greatest_at
end

local function key_of(m) return order == 'c' and m.created or order == 'f' and m.fire or m.finished end

-- size returns how many messages are in any of the states.
local function size()
  local n = 0
  for i = 1, #finished do
    n = n + call('ZCARD', q.at .. 'e' .. sub(finished, i, i))
  end
  local leased = call('SCARD', q.at .. 'l')
  if asked[LEASED] then
    n = n + leased
  end
  if asked[SCHEDULED] then
    local lines = call('ZRANGE', q.at .. 'q', 0, -1)
    for i = 1, #lines do
      n = n + call('ZCARD', q.at .. 'z' .. lines[i])
    end
    n = n - leased
  end
  return n
end

-- Whatever needs the indexes by CreatedAt and FireAt needs all of the journal in them.
if not enter(q, 64) then
  return { 2 }
end
if count and ranged and #states == 5 and kind == '' and parent == '' and group == '' then
  return { 1, call('ZCOUNT', q.at .. 'f', min, max) }
end

-- labeled returns the ids that have a label in one of the lexical indexes, or nothing when they are many.
local function labeled(set, label)
  local low, high = '[' .. label .. '\0', '(' .. label .. '\1'
  if call('ZLEXCOUNT', q.at .. set, low, high) > few then
    return
  end
  local ids = call('ZRANGEBYLEX', q.at .. set, low, high)
  for i = 1, #ids do
    ids[i] = sub(ids[i], #label + 2)
  end
  return ids
end

-- narrow returns the ids of all messages that can match, where an index tells of few.
local function narrow()
  if parent ~= '' then
    local ids = labeled('r', parent)
    if ids then
      return ids
    end
  end
  if group ~= '' and finished == '' then
    local ids = labeled('g', group)
    if ids then
      return ids
    end
  end
  if not asked[SCHEDULED] and size() <= few then
    local ids = asked[LEASED] and call('SMEMBERS', q.at .. 'l') or {}
    for i = 1, #finished do
      local some = call('ZRANGE', q.at .. 'e' .. sub(finished, i, i), 0, -1)
      for j = 1, #some do
        ids[#ids + 1] = some[j]
      end
    end
    return ids
  end
  if ranged and order ~= 'f' and call('ZCOUNT', q.at .. 'f', min, max) <= few then
    return call('ZRANGEBYSCORE', q.at .. 'f', min, max)
  end
end

local rows, found = {}, 0
local function take(m, id)
  found = found + 1
  if not count then
    rows[2 * found - 1], rows[2 * found] = string.format('%.0f', key_of(m)), id
  end
end

local ids = narrow()
if ids then
  load(q, ids)
  for i = 1, #ids do
    local h = q.heads[ids[i]]
    local m = h and decode(h)
    if matches(m) then
      take(m, ids[i])
    end
  end
  return { 1, count and found or rows }
end

-- before returns how many members of a set come before a place, or with it.
local function before(set, key, id, with)
  local low, high = call('ZCOUNT', set, '-inf', '(' .. key), call('ZCOUNT', set, '-inf', key)
  while low < high do
    local middle = math.floor((low + high) / 2)
    local member = call('ZRANGE', set, middle, middle)[1]
    if less(member, id) or with and member == id then
      low = middle + 1
    else
      high = middle
    end
  end
  return low
end

-- stretch returns up to n members of a set that follow the place, in order, and their keys.
local function stretch(set, n)
  local low, high = 0, call('ZCARD', set)
  if order == 'f' then
    low, high = call('ZCOUNT', set, '-inf', '(' .. min), call('ZCOUNT', set, '-inf', max)
    if min == '-inf' then low = 0 end
  end
  if from > 0 and desc then
    high = math.min(high, before(set, from_key, from_id, from == 2))
  elseif from > 0 then
    low = math.max(low, before(set, from_key, from_id, from == 1))
  end
  if low >= high then
    return {}
  end
  if not desc then
    return call('ZRANGE', set, low, math.min(low + n, high) - 1, 'WITHSCORES')
  end
  local got, back = call('ZRANGE', set, math.max(high - n, low), high - 1, 'WITHSCORES'), {}
  for i = #got - 1, 1, -2 do
    back[#back + 1], back[#back + 2] = got[i], got[i + 1]
  end
  return back
end

-- in_order merges the stretches of the states, which are sorted, as far as all of them reach.
local function in_order(n)
  if order ~= 'e' then
    local got = stretch(q.at .. order, n)
    return got, #got == 2 * n
  end
  local all, cut = {}, nil
  local function comes_first(a, b)
    if a[2] ~= b[2] then
      return (a[2] < b[2]) ~= desc
    end
    return a[1] ~= b[1] and less(a[1], b[1]) ~= desc
  end
  for i = 1, #finished do
    local got = stretch(q.at .. 'e' .. sub(finished, i, i), n)
    for j = 1, #got, 2 do
      all[#all + 1] = { got[j], tonumber(got[j + 1]), got[j + 1] }
    end
    if #got == 2 * n and (not cut or comes_first(all[#all], cut)) then
      cut = all[#all]
    end
  end
  table.sort(all, comes_first)
  local merged = {}
  for i = 1, #all do
    if cut and comes_first(cut, all[i]) then
      break
    end
    merged[2 * i - 1], merged[2 * i] = all[i][1], all[i][3]
  end
  return merged, cut ~= nil
end

if order == 'e' and finished == '' then
  return { 1, count and 0 or rows }
end
-- A stretch is as long as what is wanted of it where nearly all matches.
local narrowed = count or kind ~= '' or parent ~= '' or group ~= ''
local got, more = in_order(narrowed and 500 or math.min(500, math.max(want, 20)))
for i = 1, #got, 2 do
  ids = ids or {}
  ids[#ids + 1] = got[i]
end
load(q, ids or {})
local last = #got - 1
for i = 1, #got, 2 do
  local h = q.heads[got[i]]
  local m = h and decode(h)
  if matches(m) then
    take(m, got[i])
    if not count and found == want then
      last, more = i, more or i < #got - 1
      break
    end
  end
end
return { 0, count and found or rows, more and got[last + 1] or '', more and got[last] or '' }
