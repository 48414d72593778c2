-- Moves the ends of live leases (store.Line.Extend). After lib.lua.
--
-- ARGV: now; the new end, or "" to only ask; then queue, id and version of each token.
--
-- Returns for each token 0 lost, 1 extended, 2 extended with a stop mark.

local now, till = tonumber(ARGV[1]), ARGV[2]
local END = till ~= '' and pack('<d', tonumber(till))
local ids, held = {}, {}
for i = 3, #ARGV, 3 do
  gather(ids, ARGV[i], ARGV[i + 1])
end
for number, theirs in pairs(ids) do
  load(queue(number), theirs)
end
for i = 3, #ARGV, 3 do
  local q, id = queue(ARGV[i]), ARGV[i + 1]
  local h, answer = head(q, id), 0
  if h then
    local v, _, priority, _, state, stop, visible = unpick('<ddi4BBBd', h)
    if state == LEASED and v == tonumber(ARGV[i + 2]) and visible > now then
      answer = 1 + stop
      if END then
        touch(q, id)
        h = sub(h, 1, 23) .. END .. sub(h, 32)
        q.heads[id] = h
        push2(q, 'HSET', 'h', id, h)
        push2(q, 'ZADD', line(priority), till, id)
      end
    end
  end
  held[#held + 1] = answer
end
flush_all()
return held
