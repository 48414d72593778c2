-- What all scripts that write share; it is put before each of them.
--
-- KEYS: two for each queue of the call: the hash of its heads, whose name without the last letter begins all names of
-- the queue's keys, and a key that never exists (see keys.go). A script names queues by their number in KEYS, from 1.
--
-- A script is a unit of work. It reads through caches of what it has read and written, collects its writes, and flush
-- sends them with few commands, however many messages there are. No message is written twice between two flushes.

local call, pack, unpick, sub, byte = redis.call, struct.pack, struct.unpack, string.sub, string.byte

-- The zero instant, an instant that never comes (store.Never), how long the trace of a follow-up stays, and how long
-- after its PurgeAt a finished message's body goes away by itself.
local UNSET, NEVER, TRACE, GRACE = -9007199254740992, 9007199254740991, 86400000, 60000

-- States of a head. Zero: it is the trace of a follow-up.
local SCHEDULED, LEASED, DONE = 1, 2, 3

-- What becomes of a message that is put, settled or replaced, beside 0, which is that all went well.
local EXISTS, DUPLICATE, INFLIGHT, ABORTED, LOST, MISSING, CONFLICT = 1, 2, 3, 4, 5, 6, 7

-- How many values a command takes at most: Lua's unpack is limited to about 8,000.
local STEP = 4000

local queues = {}

-- queue returns the unit of work on a queue, of which it is given the number as a text.
local function queue(number)
  local q = queues[number]
  if not q then
    local n = tonumber(number)
    q = { n = n, at = sub(KEYS[2 * n - 1], 1, -2), heads = {}, dirty = {}, texts = {}, written = {},
      set = {}, del = {}, add = {}, rem = {}, join = {}, part = {}, new = {}, ended = {}, gone = {}, lines = {}, spent = 0 }
    queues[number] = q
  end
  return q
end

-- The hash of heads has fields of its own beside those of messages, whose ids have no zero byte: whether the queue's name
-- is registered; the greatest version that a message was given at first or had when it went away; and the priorities in
-- use, followed by each.
local REGISTERED, VERSION, LINE = '\0r', '\0v', '\0z'

-- load reads heads, or other fields of their hash, that are not yet known.
local function load(q, ids)
  local heads, need = q.heads, {}
  for i = 1, #ids do
    if heads[ids[i]] == nil then
      need[#need + 1] = ids[i]
    end
  end
  for i = 1, #need, STEP do
    local got = call('HMGET', q.at .. 'h', unpack(need, i, math.min(i + STEP - 1, #need)))
    for j = 1, #got do
      heads[need[i + j - 1]] = got[j]
    end
  end
end

-- head returns what is stored under an id, or false.
local function head(q, id)
  local h = q.heads[id]
  if h == nil then
    h = call('HGET', q.at .. 'h', id)
    q.heads[id] = h
  end
  return h
end

-- text returns a field of one of the small hashes (d, w, y), or false.
local function text(q, hash, field)
  local known = q.texts[hash]
  if not known then
    known = {}
    q.texts[hash] = known
    if call('EXISTS', q.at .. hash) == 0 then
      setmetatable(known, { __index = function() return false end })
    end
  end
  local value = known[field]
  if value == nil then
    value = call('HGET', q.at .. hash, field)
    known[field] = value
  end
  return value
end

-- write_text changes a field of a small hash; false removes it.
local function write_text(q, hash, field, value)
  text(q, hash, field)
  q.texts[hash][field] = value
  local written = q.written[hash]
  if not written then
    written = {}
    q.written[hash] = written
  end
  written[field] = value
end

-- The small hashes hold lists of ids, each followed by a zero byte, which no id has.
local function with(list, id) return (list or '') .. id .. '\0' end

local function without(list, id)
  local rest = {}
  for other in string.gmatch(list or '', '[^%z]+') do
    if other ~= id then
      rest[#rest + 1] = other .. '\0'
    end
  end
  return #rest > 0 and table.concat(rest)
end

-- list returns the list under a key.
local function list(lists, key)
  local l = lists[key]
  if not l then
    l = {}
    lists[key] = l
  end
  return l
end

-- push and push2 append to the list under a key.
local function push(lists, key, a)
  local l = list(lists, key)
  l[#l + 1] = a
end

local function push2(lists, key, a, b)
  local l = list(lists, key)
  local n = #l
  l[n + 1] = a
  l[n + 2] = b
end

-- send gives a command all values of each list, in as many calls as it takes.
local function send(q, command, lists)
  for key, list in pairs(lists) do
    for i = 1, #list, STEP do
      call(command, q.at .. key, unpack(list, i, math.min(i + STEP - 1, #list)))
    end
  end
end

-- The indexes by CreatedAt and FireAt (c and f) are for lists alone, and most messages are gone before anybody lists. So
-- a new message is only noted in a journal (j), of which each element holds the ids of some hundreds. Who needs the
-- indexes enters all of it first; and a writer that finds it long enters its oldest part, most of which is gone by then.
-- Every message is in both indexes or in the journal. What is entered is what its head says at that time, so that an
-- entry of the journal may be outdated, or be there twice.

-- enter enters the oldest part of the journal, of at most so many elements and about a thousand ids, into the indexes. It
-- reports whether that was all.
local function enter(q, elements)
  local found, ids, bytes, n = call('LRANGE', q.at .. 'j', 0, elements - 1), {}, 0, 0
  while n < #found and bytes < 36000 do
    n = n + 1
    bytes = bytes + #found[n]
    for id in string.gmatch(found[n], '[^%z]+') do
      ids[#ids + 1] = id
    end
  end
  if n == 0 then
    return true
  end
  local created, fire, texts = {}, {}, {}
  local function text_of(instant) -- once for each: making texts of numbers is slow
    local known = texts[instant]
    if not known then
      known = string.format('%.0f', instant)
      texts[instant] = known
    end
    return known
  end
  for i = 1, #ids, STEP do
    local heads = call('HMGET', q.at .. 'h', unpack(ids, i, math.min(i + STEP - 1, #ids)))
    for j = 1, #heads do
      local h, id = heads[j], ids[i + j - 1]
      if h and byte(h, 22) > 0 then
        local k, fires, creates = #fire + 2, unpick('<dd', h, 89 + byte(h, 48))
        fire[k - 1], created[k - 1] = text_of(fires), text_of(creates)
        fire[k], created[k] = id, id
      end
    end
  end
  send(q, 'ZADD', { c = created, f = fire })
  call('LTRIM', q.at .. 'j', n, -1)
  return n == #found and n < elements
end

-- note_new enters new messages in the journal. It is kept shorter than some hundred thousand ids.
local function note_new(q)
  local length = 0
  for i = 1, #q.new, 500 do
    length = call('RPUSH', q.at .. 'j', table.concat(q.new, '\0', i, math.min(i + 499, #q.new)))
  end
  if length > (#q.new < 100 and 2048 or 256) then
    enter(q, 64)
  end
end

-- flush sends all writes that were collected for a queue.
local function flush(q)
  if next(q.dirty) == nil and next(q.written) == nil then
    return
  end
  for hash, fields in pairs(q.written) do
    for field, value in pairs(fields) do
      if value then
        push2(q.set, hash, field, value)
      else
        push(q.del, hash, field)
      end
    end
  end
  for priority, came in pairs(q.lines) do
    if came and not head(q, LINE .. priority) then
      call('ZADD', q.at .. 'q', priority, priority)
      push2(q.set, 'h', LINE .. priority, '1')
      q.heads[LINE .. priority] = '1'
    end
  end
  if q.spent > 0 and q.spent > tonumber(head(q, VERSION) or 0) then
    local text = string.format('%.0f', q.spent)
    push2(q.set, 'h', VERSION, text)
    q.heads[VERSION] = text
  end
  if #q.ended > 0 then
    send(q, 'HDEL', { h = q.ended, b = q.ended })
    if call('EXISTS', q.at .. 'c') == 1 then
      send(q, 'ZREM', { c = q.ended, f = q.ended })
    end
    send(q, 'SREM', { l = q.ended })
  end
  send(q, 'HSET', q.set)
  send(q, 'HDEL', q.del)
  send(q, 'ZREM', q.rem)
  send(q, 'ZADD', q.add)
  send(q, 'SREM', q.part)
  send(q, 'SADD', q.join)
  note_new(q)
  for i = 1, #q.gone, STEP do
    call('UNLINK', unpack(q.gone, i, math.min(i + STEP - 1, #q.gone)))
  end
  for priority, came in pairs(q.lines) do
    if not came and call('EXISTS', q.at .. 'z' .. priority) == 0 then
      call('ZREM', q.at .. 'q', priority)
      call('HDEL', q.at .. 'h', LINE .. priority)
      q.heads[LINE .. priority] = false
    end
  end
  q.dirty, q.written, q.set, q.del, q.add, q.rem, q.join, q.part = {}, {}, {}, {}, {}, {}, {}, {}
  q.new, q.ended, q.gone, q.lines = {}, {}, {}, {}
end

local function flush_all()
  for _, q in pairs(queues) do
    flush(q)
  end
end

local line_names = {}

-- line returns the name of a priority's line.
local function line(priority)
  local name = line_names[priority]
  if not name then
    name = 'z' .. priority
    line_names[priority] = name
  end
  return name
end

-- end_plain removes a message that nothing but the indexes of every live message knows of, and that is leased.
local function end_plain(q, id, priority)
  q.heads[id] = false
  q.ended[#q.ended + 1] = id
  push(q.rem, line(priority), id)
end

-- touch is called before a message is written.
local function touch(q, id)
  if q.dirty[id] then
    flush(q)
  end
  q.dirty[id] = true
end

-- came and left note that a priority has one more message, or one less. Those that came win.
local function came(q, priority) q.lines[priority] = true end

local function left(q, priority)
  if q.lines[priority] == nil then
    q.lines[priority] = false
  end
end

-- spend notes a version that was given away, so that no id ever repeats one.
local function spend(q, version)
  if version > q.spent then
    q.spent = version
  end
end

local now_ms
-- clock returns the server's time in milliseconds.
local function clock()
  if not now_ms then
    local t = call('TIME')
    now_ms = t[1] * 1000 + math.floor(t[2] / 1000)
  end
  return now_ms
end

-- A head is all of a message that scripts read; head.go has its layout.
local function decode(h)
  local v, claims, priority, flags, state, stop, visible, updated, epoch, owner, at = unpick('<ddi4BBBddc8Bc0', h)
  local due, attempts, finished, purge, hold, fire, created, waits, history, kind, group, parent, dedup, rest =
      unpick('<dddddddI4BBc0Bc0Bc0Bc0', h, at)
  return { v = v, claims = claims, priority = priority, state = state, stop = stop, visible = visible,
    updated = updated, epoch = epoch, owner = owner, due = due, attempts = attempts, finished = finished, purge = purge,
    hold = hold, fire = fire, created = created, waits = waits, history = history, kind = kind, group = group,
    parent = parent, dedup = dedup, error = sub(h, rest) }
end

local function encode(m)
  local flags = (m.group ~= '' and 1 or 0) + (m.parent ~= '' and 2 or 0) + (m.dedup ~= '' and 4 or 0)
      + (m.history > 0 and 8 or 0) + (m.waits > 0 and 16 or 0)
  return pack('<ddi4BBBddc8Bc0', m.v, m.claims, m.priority, flags, m.state, m.stop, m.visible, m.updated, m.epoch, #m.owner, m.owner)
      .. pack('<dddddddI4BBc0Bc0Bc0Bc0', m.due, m.attempts, m.finished, m.purge, m.hold, m.fire, m.created, m.waits,
        m.history, #m.kind, m.kind, #m.group, m.group, #m.parent, m.parent, #m.dedup, m.dedup)
      .. m.error
end

local NOBODY = '\0\0\0\0\0\0\0\0'

local function copy(m)
  local c = {}
  for k, v in pairs(m) do
    c[k] = v
  end
  return c
end

local function is_live(m) return m.state == SCHEDULED or m.state == LEASED end

local function in_flight(m, now) return m.state == LEASED and m.visible > now end

-- holds tells whether a message keeps its dedup key from others.
local function holds(m, now) return m.dedup ~= '' and (is_live(m) or m.state >= DONE and m.hold > now) end

-- is_keyed tells whether a message stands in the index of dedup keys: it holds its key or may, when now goes back.
local function is_keyed(m) return m.dedup ~= '' and m.state > 0 and (is_live(m) or m.hold ~= UNSET) end

-- holder returns the id, head and fields of who else than the id holds a dedup key.
local function holder(q, key, id, now)
  local list = text(q, 'd', key)
  if not list then
    return
  end
  local best_id, best_head, best, longest
  for other in string.gmatch(list, '[^%z]+') do
    local h = other ~= id and head(q, other)
    local m = h and decode(h)
    if m and holds(m, now) then
      local holds_until = is_live(m) and NEVER + 1 or m.hold
      if not best or holds_until > longest then
        best_id, best_head, best, longest = other, h, m, holds_until
      end
    end
  end
  return best_id, best_head, best
end

-- index moves a message from where it stood in the indexes to where it belongs now. Either may be nil.
local function index(q, id, old, new)
  local was_live, live = old and is_live(old), new and is_live(new)
  if live then
    push2(q.add, line(new.priority), new.visible, id)
    if not was_live or old.priority ~= new.priority then
      came(q, new.priority)
    end
  end
  if was_live and (not live or old.priority ~= new.priority) then
    push(q.rem, line(old.priority), id)
    left(q, old.priority)
  end
  local was, is = old and old.state > 0, new and new.state > 0
  if is and not was then
    q.new[#q.new + 1] = id
  elseif is then
    if old.created ~= new.created then push2(q.add, 'c', new.created, id) end
    if old.fire ~= new.fire then push2(q.add, 'f', new.fire, id) end
  elseif was then
    push(q.rem, 'c', id)
    push(q.rem, 'f', id)
  end
  if was_live and old.state == LEASED and not (live and new.state == LEASED) then
    push(q.part, 'l', id)
  end
  local ended = new and new.state >= DONE and new.state
  if old and old.state >= DONE and old.state ~= ended then
    push(q.rem, 'e' .. old.state, id)
  end
  if ended then
    push2(q.add, 'e' .. ended, new.finished, id)
  end
  if new and not live and new.purge ~= NEVER then
    push2(q.add, 'p', new.purge, id)
  elseif old and not was_live and old.purge ~= NEVER then
    push(q.rem, 'p', id)
  end
  local old_group, group = was_live and old.group or '', live and new.group or ''
  if old_group ~= group then
    if old_group ~= '' then push(q.rem, 'g', old_group .. '\0' .. id) end
    if group ~= '' then push2(q.add, 'g', 0, group .. '\0' .. id) end
  end
  local old_parent, parent = was and old.parent or '', is and new.parent or ''
  if old_parent ~= parent then
    if old_parent ~= '' then push(q.rem, 'r', old_parent .. '\0' .. id) end
    if parent ~= '' then push2(q.add, 'r', 0, parent .. '\0' .. id) end
  end
  local old_key, key = old and is_keyed(old) and old.dedup, new and is_keyed(new) and new.dedup
  if old_key ~= key then
    if old_key then write_text(q, 'd', old_key, without(text(q, 'd', old_key), id)) end
    if key then write_text(q, 'd', key, with(text(q, 'd', key), id)) end
  end
end

-- kept returns body and history of a finished message, or nothing when it has expired.
local function kept(q, id)
  local value = call('GET', q.at .. 'k:' .. id)
  if value then
    local body, at = unpick('<I4c0', value)
    return body, sub(value, at)
  end
end

-- keep stores body and history of a finished message where they expire by themselves. One whose PurgeAt has passed by the
-- server's clock when it is written waits for Purge.
local function keep(q, id, body, history, purge)
  local value = pack('<I4', #body) .. body .. history
  if purge < NEVER and purge + GRACE > clock() then
    call('SET', q.at .. 'k:' .. id, value, 'PXAT', purge + GRACE)
  else
    call('SET', q.at .. 'k:' .. id, value)
  end
end

-- place tells where body and history are: b for the hashes of live messages, k for a key of their own, or nowhere.
local function place(m)
  return m and m.state > 0 and (is_live(m) and 'b' or 'k')
end

-- write is every change of a message: what was stored under the id becomes what is given. Either may be nil. A nil body
-- or history is the old one.
local function write(q, id, old, new, body, history)
  touch(q, id)
  local from, to = place(old), place(new)
  if from and to and from ~= to or from == 'k' and to == 'k' then
    local old_body, old_history
    if from == 'k' then
      old_body, old_history = kept(q, id)
    elseif not (body and history) then
      old_body = body or call('HGET', q.at .. 'b', id)
      old_history = old.history > 0 and call('HGET', q.at .. 'a', id)
    end
    body, history = body or old_body or '', history or old_history or ''
  end
  if from == 'b' and to ~= 'b' then
    push(q.del, 'b', id)
    if old.history > 0 then push(q.del, 'a', id) end
  elseif from == 'k' and to ~= 'k' then
    q.gone[#q.gone + 1] = q.at .. 'k:' .. id
  end
  if to == 'k' then
    keep(q, id, body, history or '', new.purge)
  elseif to == 'b' then
    if body then push2(q.set, 'b', id, body) end
    if history and history ~= '' then
      push2(q.set, 'a', id, history)
    elseif history and from == 'b' and old.history > 0 then
      push(q.del, 'a', id)
    end
  end
  if new then
    local h = encode(new)
    q.heads[id] = h
    push2(q.set, 'h', id, h)
  else
    q.heads[id] = false
    push(q.del, 'h', id)
    spend(q, old.v)
  end
  index(q, id, old, new)
end

local opened = {}

-- leave takes a message that is live no more out of every gate that waits for it. The last one opens the gate.
local function leave(q, id, now)
  local waiting = text(q, 'w', id)
  if not waiting then
    return
  end
  write_text(q, 'w', id, false)
  for gated in string.gmatch(waiting, '[^%z]+') do
    local old = decode(head(q, gated))
    local new = copy(old)
    new.v, new.updated, new.waits = old.v + 1, now, old.waits - 1
    if new.waits == 0 then
      new.visible = old.due
      write_text(q, 'y', gated, false)
      opened[#opened + 1] = q.n
      opened[#opened + 1] = old.due
    end
    write(q, gated, old, new)
  end
end

-- abandon makes a message that leaves the waiting ones wait for nothing any more.
local function abandon(q, id, m)
  if m.waits == 0 then
    return
  end
  for member in string.gmatch(text(q, 'y', id) or '', '[^%z]+') do
    write_text(q, 'w', member, without(text(q, 'w', member), id))
  end
  write_text(q, 'y', id, false)
end

-- vanish is the end of a message that is not kept. The id of a follow-up stays taken for a while.
local function vanish(q, id, old, parent, now)
  abandon(q, id, old)
  local trace
  if parent ~= '' then
    trace = { v = old.v, claims = 0, priority = 0, state = 0, stop = 0, visible = UNSET, updated = now, epoch = NOBODY,
      owner = '', due = UNSET, attempts = 0, finished = UNSET, purge = now + TRACE, hold = UNSET, fire = UNSET,
      created = UNSET, waits = 0, history = 0, kind = '', group = '', parent = '', dedup = '', error = '' }
  end
  write(q, id, old, trace)
  leave(q, id, now)
end

-- append adds an attempt to a history: attempts with their lengths before them, at most twenty.
local function append(history, count, attempt)
  if count >= 20 then
    local _, at = unpick('<I4c0', history)
    history, count = sub(history, at), count - 1
  end
  return history .. pack('<I4', #attempt) .. attempt, count + 1
end
