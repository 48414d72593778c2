-- Tells of each queue the earliest instant within a window at which something in it is visible (store.Reader.Queues).
--
-- KEYS: as in lib.lua. ARGV: the least and the greatest instant. Returns an instant for each queue, "" for none.

local out = {}
for i = 1, #KEYS, 2 do
  local at, first, text = string.sub(KEYS[i], 1, -2), nil, ''
  local lines = redis.call('ZRANGE', at .. 'q', 0, -1)
  for j = 1, #lines do
    local got = redis.call('ZRANGEBYSCORE', at .. 'z' .. lines[j], ARGV[1], ARGV[2], 'WITHSCORES', 'LIMIT', 0, 1)
    local score = got[2] and tonumber(got[2])
    if score and (not first or score < first) then
      first, text = score, got[2]
    end
  end
  out[#out + 1] = text
end
return out
