--[[
Set and remove a tenant's small values, in one step.

KEYS  1 values
ARGV  1 how many are set   then name and value of each   then the names to remove

Returns nothing.
]]
local count = tonumber(ARGV[1])
for i = 1, count do redis.call('HSET', KEYS[1], ARGV[2 * i], ARGV[2 * i + 1]) end
for at = 2 + 2 * count, #ARGV do redis.call('HDEL', KEYS[1], ARGV[at]) end
