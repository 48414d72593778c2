-- Reads messages of one queue for a page. After lib.lua and message.lua.
--
-- ARGV: "1" with payloads, else "0"; then ids. Returns head and body of each; both are empty where nothing is left.

whole()
local q, whole, ids, out = queue('1'), ARGV[1] == '1', {}, {}
for i = 2, #ARGV do
  ids[#ids + 1] = ARGV[i]
end
load(q, ids)
for i = 1, #ids do
  local h = q.heads[ids[i]]
  local m = h and decode(h)
  local body = m and m.state > 0 and (is_live(m) and call('HGET', q.at .. 'b', ids[i]) or not is_live(m) and kept(q, ids[i]))
  if body and not whole then
    body = sub(body, 1, 4 + unpick('<I4', body))
  end
  out[2 * i - 1], out[2 * i] = body and h or '', body or ''
end
return out
