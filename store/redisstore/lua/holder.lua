-- Tells who holds a dedup key (store.Reader.Holder). After lib.lua and message.lua.
--
-- ARGV: now, dedup key. Returns the id, or nothing.

whole()
return holder(queue('1'), ARGV[2], nil, tonumber(ARGV[1])) or false
