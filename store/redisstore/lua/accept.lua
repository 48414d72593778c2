-- What put.lua and settle.lua share: how a message is accepted. After lib.lua and message.lua.

-- first_version returns the version of messages that are new under their ids: the instant in microseconds, or more where
-- that was given away before. Those of one call have the same.
local function first_version(q, micros)
  if not q.first or q.first < q.spent then
    q.first = math.max(micros, math.max(tonumber(head(q, VERSION) or 0), q.spent) + 1)
    spend(q, q.first)
  end
  return q.first
end

local refused, members, stands, accept

-- accepting defines what takes a message that is not plain and new. A script calls it before it uses any.
local function accepting()
  if accept then
    return
  end
  whole()

  -- refused is the answer to a message that another keeps out: the reason, and the other one's id, head and body without
  -- the payload.
  function refused(why, q, id, h)
    local m, body = decode(h), nil
    if m.state == 0 then
      return { why, id, h, '' }
    elseif is_kept(m) then
      body = kept(q, id)
    else
      body = m.body
      local pending = body == '' and q.HSET and q.HSET.b
      for i = 1, pending and #pending or 0, 2 do
        if pending[i] == id then body = pending[i + 1] end
      end
      if body == '' then body = call('HGET', q.at .. 'b', id) end
    end
    return { why, id, without_payload(h, m, body) }
  end

  -- members returns the ids of the live messages that a gate names, without the gated one, and how many there are.
  function members(q, extra, id)
    local seen, list, n = {}, {}, 0
    local function add(other)
      local h = other ~= id and not seen[other] and head(q, other)
      local state = h and byte(h, 22)
      if state == SCHEDULED or state == LEASED then
        seen[other], n = true, n + 1
        list[n] = other .. '\0'
      end
    end
    for other in string.gmatch(extra.ids, '[^%z]+') do
      add(other)
    end
    if extra.group ~= '' then
      flush(q)
      local found = call('ZRANGEBYLEX', q.at .. 'g', '[' .. extra.group .. '\0', '(' .. extra.group .. '\1')
      for i = 1, #found do
        add(sub(found[i], #extra.group + 2))
      end
    end
    return list, n
  end

  -- stands tells whether a head still has its message: a finished one expires by itself.
  function stands(q, id, h)
    return byte(h, 22) < DONE or call('EXISTS', q.at .. 'k:' .. id) == 1
  end

  -- accept stores a message or says why not: it returns its version, or what refused returns.
  -- m is {id, head, body, extra}; the body may follow the head instead.
  function accept(q, now, micros, overwrite, m)
    local id = m[1]
    local old_head = head(q, id)
    if old_head and not overwrite and stands(q, id, old_head) then
      return refused(EXISTS, q, id, old_head)
    end
    local old, new = old_head and decode(old_head), decode(m[2])
    local extra = { history = '', ids = '', group = '' }
    if m[4] ~= '' then
      extra.history, extra.ids, extra.group = unpick('<I4c0I4c0I4c0', m[4])
    end
    if old and in_flight(old, now) then
      return refused(INFLIGHT, q, id, old_head)
    end
    if holds(new, now) then
      local other, other_head = holder(q, new.dedup, id, now)
      if other then
        return refused(DUPLICATE, q, other, other_head)
      end
    end
    if old then
      abandon(q, id, old)
      new.v = old.v + 1
    else
      new.v = first_version(q, micros)
    end
    if is_live(new) and (extra.ids ~= '' or extra.group ~= '') then
      local list, n = members(q, extra, id)
      if n > 0 then
        new.waits, new.visible = n, NEVER
        for i = 1, n do
          local member = sub(list[i], 1, -2)
          write_text(q, 'w', member, with(text(q, 'w', member), id))
        end
        write_text(q, 'y', id, table.concat(list))
      end
    end
    write(q, id, old or nil, new, m[3] ~= '' and m[3] or new.body, extra.history)
    if old and not is_live(new) then
      leave(q, id, now)
    end
    return new.v
  end
end
