-- What scripts that work on messages share; it is put before each of them. What few calls need is in message.lua, since
-- Redis runs all of a script's text with every call, and a function that is made and not called costs nearly as much.
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

-- How large a body may be that follows its head; body.go has the same.
local SMALL = 1024

-- How many values a command takes at most: Lua's unpack is limited to about 8,000.
local STEP = 4000

local queues = {}

-- queue returns the unit of work on a queue, of which it is given the number as a text.
local function queue(number)
  local q = queues[number]
  if not q then
    local n = tonumber(number)
    -- heads and texts are what is known of the hashes, dirty the ids that were written since the last flush; the rest is
    -- what the next one will send.
    q = { n = n, at = sub(KEYS[2 * n - 1], 1, -2), heads = {}, dirty = {}, lines = {}, spent = 0 }
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
  q.texts = q.texts or {}
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

-- list returns the list of what a command will be given for a key.
local function list(q, command, key)
  local lists = q[command]
  if not lists then
    lists = {}
    q[command] = lists
  end
  local l = lists[key]
  if not l then
    l = {}
    lists[key] = l
  end
  return l
end

-- push and push2 append to such a list.
local function push(q, command, key, a)
  local l = list(q, command, key)
  l[#l + 1] = a
end

local function push2(q, command, key, a, b)
  local l = list(q, command, key)
  local n = #l
  l[n + 1] = a
  l[n + 2] = b
end

-- gather appends to the list under a key of a table.
local function gather(lists, key, a)
  local l = lists[key]
  if not l then
    l = {}
    lists[key] = l
  end
  l[#l + 1] = a
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

local enter, whole -- in message.lua

-- note_new enters new messages in the journal. It is kept shorter than some hundred thousand ids.
local function note_new(q, ids)
  local length
  for i = 1, #ids, 500 do
    length = call('RPUSH', q.at .. 'j', table.concat(ids, '\0', i, math.min(i + 499, #ids)))
  end
  if length > (#ids < 100 and 2048 or 256) then
    whole()
    enter(q, 64)
  end
end

-- end_line forgets a priority that has no message any more.
local function end_line(q, priority)
  if call('EXISTS', q.at .. 'z' .. priority) == 0 then
    call('ZREM', q.at .. 'q', priority)
    call('HDEL', q.at .. 'h', LINE .. priority)
    q.heads[LINE .. priority] = false
  end
end

-- settle_fields collects the writes to the queue's own fields.
local function settle_fields(q)
  for hash, fields in pairs(q.written or {}) do
    for field, value in pairs(fields) do
      if value then
        push2(q, 'HSET', hash, field, value)
      else
        push(q, 'HDEL', hash, field)
      end
    end
  end
  for priority, came in pairs(q.lines) do
    if came and not head(q, LINE .. priority) then
      call('ZADD', q.at .. 'q', priority, priority)
      push2(q, 'HSET', 'h', LINE .. priority, '1')
      q.heads[LINE .. priority] = '1'
    end
  end
  if q.spent > 0 and q.spent > tonumber(head(q, VERSION) or 0) then
    local version = string.format('%.0f', q.spent)
    if q.HSET then
      push2(q, 'HSET', 'h', VERSION, version)
    else -- what only frees memory must not fail for lack of it; versions grow with the clock, too
      redis.pcall('HSET', q.at .. 'h', VERSION, version)
    end
    q.heads[VERSION] = version
  end
end

-- flush sends all writes that were collected for a queue: first those that need memory, which a full server refuses, so
-- that nothing is done by halves then.
local function flush(q)
  if next(q.dirty) == nil and not q.written then
    return
  end
  settle_fields(q)
  if q.HSET then send(q, 'HSET', q.HSET) end
  if q.ZADD then send(q, 'ZADD', q.ZADD) end
  if q.SADD then send(q, 'SADD', q.SADD) end
  if q.new and #q.new > 0 then note_new(q, q.new) end
  local ended = q.ended
  if ended then
    send(q, 'HDEL', { h = ended })
    if call('EXISTS', q.at .. 'c') == 1 then
      send(q, 'ZREM', { c = ended, f = ended })
    end
    send(q, 'SREM', { l = ended })
  end
  if q.HDEL then send(q, 'HDEL', q.HDEL) end
  if q.ZREM then send(q, 'ZREM', q.ZREM) end
  if q.SREM then send(q, 'SREM', q.SREM) end
  if q.gone then
    for i = 1, #q.gone, STEP do
      call('UNLINK', unpack(q.gone, i, math.min(i + STEP - 1, #q.gone)))
    end
  end
  for priority, came in pairs(q.lines) do
    if not came then
      end_line(q, priority)
    end
  end
  q.HSET, q.HDEL, q.ZREM, q.ZADD, q.SREM, q.SADD, q.written, q.new, q.ended, q.gone = nil
  q.dirty, q.lines = {}, {}
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

-- end_plain removes a message that nothing but the indexes of every live message knows of, and that is leased. Apart
-- says that its body is not with the head.
local function end_plain(q, id, priority, apart)
  q.heads[id] = false
  if apart then
    push(q, 'HDEL', 'b', id)
  end
  local ended = q.ended
  if not ended then
    ended = {}
    q.ended = ended
  end
  ended[#ended + 1] = id
  push(q, 'ZREM', line(priority), id)
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

-- The incarnation of nobody, and queue and instant of each gate that opened.
local NOBODY, opened = '\0\0\0\0\0\0\0\0', {}
