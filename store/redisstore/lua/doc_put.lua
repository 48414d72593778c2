-- Writes or deletes a doc (store.Docs).
--
-- KEYS: hash of docs, set of names, revision. ARGV: name, expected version, then the body, or nothing to delete.
--
-- Returns the new revision, which is the doc's version; 0: it has another version; -1: there is none to delete.

local stored = redis.call('HGET', KEYS[1], ARGV[1])
local version = stored and struct.unpack('<d', stored) or 0
if not stored and not ARGV[3] then
  return -1
elseif version ~= tonumber(ARGV[2]) then
  return 0
end
local revision = redis.call('INCR', KEYS[3])
if ARGV[3] then
  redis.call('HSET', KEYS[1], ARGV[1], struct.pack('<d', revision) .. ARGV[3])
  redis.call('ZADD', KEYS[2], 0, ARGV[1])
else
  redis.call('HDEL', KEYS[1], ARGV[1])
  redis.call('ZREM', KEYS[2], ARGV[1])
end
return revision
