-- Enters the oldest part of queues' journals into the indexes of lists. After lib.lua and message.lua.
--
-- KEYS: as in lib.lua. Returns nothing.

whole()
for i = 1, #KEYS / 2 do
  enter(queue(tostring(i)), 64)
end
