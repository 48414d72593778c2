-- Tells how many messages each queue has in some states, by the sizes of its indexes.
--
-- KEYS: as in lib.lua. ARGV: the states, one digit each. Returns a number for each queue.

local scheduled, leased, finished = string.find(ARGV[1], '1'), string.find(ARGV[1], '2'), {}
for s in string.gmatch(ARGV[1], '[345]') do
  finished[#finished + 1] = s
end
local out = {}
for i = 1, #KEYS, 2 do
  local at, n = string.sub(KEYS[i], 1, -2), 0
  for j = 1, #finished do
    n = n + redis.call('ZCARD', at .. 'e' .. finished[j])
  end
  if scheduled or leased then
    local held = redis.call('SCARD', at .. 'l')
    if leased then
      n = n + held
    end
    if scheduled then
      local lines = redis.call('ZRANGE', at .. 'q', 0, -1)
      for j = 1, #lines do
        n = n + redis.call('ZCARD', at .. 'z' .. lines[j])
      end
      n = n - held
    end
  end
  out[#out + 1] = n
end
return out
