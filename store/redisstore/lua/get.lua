-- Reads one message (store.Reader.Get). After lib.lua and message.lua.
--
-- ARGV: id. Returns {head, body, history}, or nothing; body is "" if it follows the head.

whole()
local q, id = queue('1'), ARGV[1]
local h = head(q, id)
if not h then
  return false
end
local m = decode(h)
if m.state == 0 then
  return false
elseif is_live(m) then
  return { h, m.body == '' and body_of(q, id, m) or '', m.history > 0 and call('HGET', q.at .. 'a', id) or '' }
end
local body, history = kept(q, id)
return body and { h, body, history }
