--[[
Raise watermarks; none falls.

KEYS  1 marks
ARGV  two per device: device   cursor

Returns nothing.
]]
for at = 1, #ARGV, 2 do
  local kept = redis.call('HGET', KEYS[1], ARGV[at])
  if not kept or tonumber(ARGV[at + 1]) > tonumber(kept) then redis.call('HSET', KEYS[1], ARGV[at], ARGV[at + 1]) end
end
