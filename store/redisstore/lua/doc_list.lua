-- Lists docs (store.Docs.List).
--
-- KEYS: hash of docs, set of names. ARGV: lexical range of names, both ends; at most how many, -1 for all.
--
-- Returns name and record of each.

local names = redis.call('ZRANGEBYLEX', KEYS[2], ARGV[1], ARGV[2], 'LIMIT', 0, ARGV[3])
local out = {}
for i = 1, #names do
  out[2 * i - 1], out[2 * i] = names[i], redis.call('HGET', KEYS[1], names[i])
end
return out
