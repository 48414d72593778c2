-- Ends the leases of an owner's earlier incarnations (store.Line.Forfeit). After lib.lua and message.lua.
--
-- ARGV: now; the owner; the incarnation before which leases end.
--
-- Returns how many there were.

whole()
local now, owner, epoch, n = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), 0
for i = 1, #KEYS / 2 do
  local q = queue(tostring(i))
  local ids = call('SMEMBERS', q.at .. 'l')
  load(q, ids)
  for j = 1, #ids do
    local h = q.heads[ids[j]]
    local old = h and decode(h)
    if old and old.owner == owner and unpick('<i8', old.epoch) < epoch then
      local new = copy(old)
      new.v, new.updated, new.state, new.stop, new.owner, new.epoch, new.visible = old.v + 1, now, SCHEDULED, 0, '', NOBODY, old.due
      write(q, ids[j], old, new)
      n = n + 1
    end
  end
  flush(q)
end
return n
