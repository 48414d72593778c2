-- Reads messages of one queue for a page. After lib.lua and message.lua.
--
-- ARGV: "1" with payloads, else "0"; then ids. Returns head and body of each; both are empty where nothing is left.

whole()
local q, payloads, ids, out = queue('1'), ARGV[1] == '1', {}, {}
for i = 2, #ARGV do
  ids[#ids + 1] = ARGV[i]
end
load(q, ids)
for i = 1, #ids do
  local h, body = q.heads[ids[i]], nil
  local m = h and decode(h)
  if m and is_live(m) then
    body = body_of(q, ids[i], m)
  elseif m and is_kept(m) then
    body = kept(q, ids[i])
  end
  if body and payloads then
    h = sub(h, 1, #h - #m.body)
  elseif body then
    h, body = without_payload(h, m, body)
  end
  out[2 * i - 1], out[2 * i] = body and h or '', body or ''
end
return out
