-- What scripts need of messages that are not plain, or that are not just leased or removed. After lib.lua.

local write_text, with, without, clock, decode, encode, copy, is_live, in_flight, holds, is_keyed
local holder, index, kept, keep, body_of, is_kept, place_body, write, leave, abandon, vanish, append, now_ms
local without_payload

-- whole defines all of it. A script calls it before it uses any.
function whole()
  if decode then
    return
  end

  -- write_text changes a field of a small hash; false removes it.
  function write_text(q, hash, field, value)
    text(q, hash, field)
    q.texts[hash][field] = value
    q.written = q.written or {}
    local written = q.written[hash]
    if not written then
      written = {}
      q.written[hash] = written
    end
    written[field] = value
  end

  -- The small hashes hold lists of ids, each followed by a zero byte, which no id has.
  function with(list, id) return (list or '') .. id .. '\0' end

  function without(list, id)
    local rest = {}
    for other in string.gmatch(list or '', '[^%z]+') do
      if other ~= id then
        rest[#rest + 1] = other .. '\0'
      end
    end
    return #rest > 0 and table.concat(rest)
  end

  -- enter enters the oldest part of the journal, of at most so many elements and about a thousand ids, into the indexes. It
  -- reports whether that was all.
  function enter(q, elements)
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

  -- clock returns the server's time in milliseconds.
  function clock()
    if not now_ms then
      local t = call('TIME')
      now_ms = t[1] * 1000 + math.floor(t[2] / 1000)
    end
    return now_ms
  end

  -- A head is all of a message that scripts read; head.go has its layout.
  function decode(h)
    local v, claims, priority, flags, state, stop, visible, updated, epoch, owner, at = unpick('<ddi4BBBddc8Bc0', h)
    local due, attempts, finished, purge, hold, fire, created, waits, history, kind, group, parent, dedup, err, rest =
        unpick('<dddddddI4BBc0Bc0Bc0Bc0I4c0', h, at)
    return { v = v, claims = claims, priority = priority, state = state, stop = stop, visible = visible,
      updated = updated, epoch = epoch, owner = owner, due = due, attempts = attempts, finished = finished, purge = purge,
      hold = hold, fire = fire, created = created, waits = waits, history = history, kind = kind, group = group,
      parent = parent, dedup = dedup, error = err, body = sub(h, rest) }
  end

  function encode(m)
    local flags = (m.group ~= '' and 1 or 0) + (m.parent ~= '' and 2 or 0) + (m.dedup ~= '' and 4 or 0)
        + (m.history > 0 and 8 or 0) + (m.waits > 0 and 16 or 0) + (m.body ~= '' and 32 or 0)
    return pack('<ddi4BBBddc8Bc0', m.v, m.claims, m.priority, flags, m.state, m.stop, m.visible, m.updated, m.epoch, #m.owner, m.owner)
        .. pack('<dddddddI4BBc0Bc0Bc0Bc0I4c0', m.due, m.attempts, m.finished, m.purge, m.hold, m.fire, m.created, m.waits,
          m.history, #m.kind, m.kind, #m.group, m.group, #m.parent, m.parent, #m.dedup, m.dedup, #m.error, m.error)
        .. m.body
  end

  function copy(m)
    local c = {}
    for k, v in pairs(m) do
      c[k] = v
    end
    return c
  end

  function is_live(m) return m.state == SCHEDULED or m.state == LEASED end

  function in_flight(m, now) return m.state == LEASED and m.visible > now end

  -- holds tells whether a message keeps its dedup key from others.
  function holds(m, now) return m.dedup ~= '' and (is_live(m) or m.state >= DONE and m.hold > now) end

  -- is_keyed tells whether a message stands in the index of dedup keys: it holds its key or may, when now goes back.
  function is_keyed(m) return m.dedup ~= '' and m.state > 0 and (is_live(m) or m.hold ~= UNSET) end

  -- holder returns the id, head and fields of who else than the id holds a dedup key.
  function holder(q, key, id, now)
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
  function index(q, id, old, new)
    local was_live, live = old and is_live(old), new and is_live(new)
    if live then
      push2(q, 'ZADD', line(new.priority), new.visible, id)
      if not was_live or old.priority ~= new.priority then
        came(q, new.priority)
      end
    end
    if was_live and (not live or old.priority ~= new.priority) then
      push(q, 'ZREM', line(old.priority), id)
      left(q, old.priority)
    end
    local was, is = old and old.state > 0, new and new.state > 0
    if is and not was then
      q.new = q.new or {}
      q.new[#q.new + 1] = id
    elseif is then
      if old.created ~= new.created then push2(q, 'ZADD', 'c', new.created, id) end
      if old.fire ~= new.fire then push2(q, 'ZADD', 'f', new.fire, id) end
    elseif was then
      push(q, 'ZREM', 'c', id)
      push(q, 'ZREM', 'f', id)
    end
    if was_live and old.state == LEASED and not (live and new.state == LEASED) then
      push(q, 'SREM', 'l', id)
    end
    local ended = new and new.state >= DONE and new.state
    if old and old.state >= DONE and old.state ~= ended then
      push(q, 'ZREM', 'e' .. old.state, id)
    end
    if ended then
      push2(q, 'ZADD', 'e' .. ended, new.finished, id)
    end
    if new and not live and new.purge ~= NEVER then
      push2(q, 'ZADD', 'p', new.purge, id)
    elseif old and not was_live and old.purge ~= NEVER then
      push(q, 'ZREM', 'p', id)
    end
    local old_group, group = was_live and old.group or '', live and new.group or ''
    if old_group ~= group then
      if old_group ~= '' then push(q, 'ZREM', 'g', old_group .. '\0' .. id) end
      if group ~= '' then push2(q, 'ZADD', 'g', 0, group .. '\0' .. id) end
    end
    local old_parent, parent = was and old.parent or '', is and new.parent or ''
    if old_parent ~= parent then
      if old_parent ~= '' then push(q, 'ZREM', 'r', old_parent .. '\0' .. id) end
      if parent ~= '' then push2(q, 'ZADD', 'r', 0, parent .. '\0' .. id) end
    end
    local old_key, key = old and is_keyed(old) and old.dedup, new and is_keyed(new) and new.dedup
    if old_key ~= key then
      if old_key then write_text(q, 'd', old_key, without(text(q, 'd', old_key), id)) end
      if key then write_text(q, 'd', key, with(text(q, 'd', key), id)) end
    end
  end

  -- kept returns body and history of a finished message, or nothing when it has expired.
  function kept(q, id)
    local value = call('GET', q.at .. 'k:' .. id)
    if value then
      local body, at = unpick('<I4c0', value)
      return body, sub(value, at)
    end
  end

  -- keep stores body and history of a finished message where they expire by themselves. One whose PurgeAt has passed by the
  -- server's clock when it is written waits for Purge.
  function keep(q, id, body, history, purge)
    local value = pack('<I4', #body) .. body .. history
    if purge < NEVER and purge + GRACE > clock() then
      call('SET', q.at .. 'k:' .. id, value, 'PXAT', purge + GRACE)
    else
      call('SET', q.at .. 'k:' .. id, value)
    end
  end

  -- body_of returns the body of a live message: it follows the head where it is small, else it has a field of its own.
  function body_of(q, id, m)
    return m.body ~= '' and m.body or call('HGET', q.at .. 'b', id) or ''
  end

  -- is_kept tells whether body and history are in a key of their own.
  function is_kept(m) return m and m.state >= DONE end

  -- place_body decides where the body of a live message is from now on; nil leaves it where it was.
  function place_body(q, id, old, new, body)
    local apart = old and is_live(old) and old.body == ''
    if body and #body <= SMALL then
      new.body = body
    elseif body then
      new.body = ''
      push2(q, 'HSET', 'b', id, body)
    end
    if apart and new.body ~= '' then
      push(q, 'HDEL', 'b', id)
    end
  end

  -- write is every change of a message: what was stored under the id becomes what is given. Either may be nil. A nil body
  -- or history is the old one.
  function write(q, id, old, new, body, history)
    touch(q, id)
    local was_live, live, was_kept, kept_now = old and is_live(old), new and is_live(new), is_kept(old), is_kept(new)
    if was_live and kept_now then
      body = body or body_of(q, id, old)
      history = history or old.history > 0 and call('HGET', q.at .. 'a', id) or ''
    elseif was_kept and (live or kept_now) and not (body and history) then
      local old_body, old_history = kept(q, id)
      body, history = body or old_body or '', history or old_history or ''
    end
    if was_live and not live then
      if old.body == '' then push(q, 'HDEL', 'b', id) end
      if old.history > 0 then push(q, 'HDEL', 'a', id) end
    elseif was_kept and not kept_now then
      q.gone = q.gone or {}
      q.gone[#q.gone + 1] = q.at .. 'k:' .. id
    end
    if kept_now then
      new.body = ''
      keep(q, id, body or '', history or '', new.purge)
    elseif live then
      place_body(q, id, old, new, body)
      if history and history ~= '' then
        push2(q, 'HSET', 'a', id, history)
      elseif history and was_live and old.history > 0 then
        push(q, 'HDEL', 'a', id)
      end
    end
    if new then
      local h = encode(new)
      q.heads[id] = h
      push2(q, 'HSET', 'h', id, h)
    else
      q.heads[id] = false
      push(q, 'HDEL', 'h', id)
      spend(q, old.v)
    end
    index(q, id, old, new)
  end

  -- leave takes a message that is live no more out of every gate that waits for it. The last one opens the gate.
  function leave(q, id, now)
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
  function abandon(q, id, m)
    if m.waits == 0 then
      return
    end
    for member in string.gmatch(text(q, 'y', id) or '', '[^%z]+') do
      write_text(q, 'w', member, without(text(q, 'w', member), id))
    end
    write_text(q, 'y', id, false)
  end

  -- vanish is the end of a message that is not kept. The id of a follow-up stays taken for a while.
  function vanish(q, id, old, parent, now)
    abandon(q, id, old)
    local trace
    if parent ~= '' then
      trace = { v = old.v, claims = 0, priority = 0, state = 0, stop = 0, visible = UNSET, updated = now, epoch = NOBODY,
        owner = '', due = UNSET, attempts = 0, finished = UNSET, purge = now + TRACE, hold = UNSET, fire = UNSET,
        created = UNSET, waits = 0, history = 0, kind = '', group = '', parent = '', dedup = '', error = '', body = '' }
    end
    write(q, id, old, trace)
    leave(q, id, now)
  end

  -- without_payload returns a head and its body without the payload, apart.
  function without_payload(h, m, body)
    return sub(h, 1, #h - #m.body), sub(body, 1, 4 + unpick('<I4', body))
  end

  -- append adds an attempt to a history: attempts with their lengths before them, at most twenty.
  function append(history, count, attempt)
    if count >= 20 then
      local _, at = unpick('<I4c0', history)
      history, count = sub(history, at), count - 1
    end
    return history .. pack('<I4', #attempt) .. attempt, count + 1
  end
end
