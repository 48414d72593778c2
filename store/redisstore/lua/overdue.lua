-- Tells what there is to purge: for each queue the first that are over.
--
-- KEYS: as in lib.lua. ARGV: now; how many at most of each queue. Returns queue, id and PurgeAt of each.

local out = {}
for i = 1, #KEYS, 2 do
  local got = redis.call('ZRANGEBYSCORE', string.sub(KEYS[i], 1, -2) .. 'p', '-inf', ARGV[1], 'WITHSCORES', 'LIMIT', 0, ARGV[2])
  for j = 1, #got, 2 do
    out[#out + 1] = (i + 1) / 2
    out[#out + 1] = got[j]
    out[#out + 1] = got[j + 1]
  end
end
return out
