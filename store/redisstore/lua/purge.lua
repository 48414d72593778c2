-- Removes finished messages and traces whose time has come. After lib.lua and message.lua.
--
-- ARGV: now; then queue and id of each, as overdue.lua told them.
--
-- Returns how many were removed; what has changed since is left.

whole()
local now, ids, n = tonumber(ARGV[1]), {}, 0
for i = 2, #ARGV, 2 do
  gather(ids, ARGV[i], ARGV[i + 1])
end
for number, theirs in pairs(ids) do
  local q = queue(number)
  load(q, theirs)
  for i = 1, #theirs do
    local h = q.heads[theirs[i]]
    local old = h and decode(h)
    if old and not is_live(old) and old.purge <= now then
      write(q, theirs[i], old, nil)
      n = n + 1
    end
  end
  flush(q)
end
return n
