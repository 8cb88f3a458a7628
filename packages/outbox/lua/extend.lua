--[[
Allow cursors up to a limit; never lowers it. Does nothing when the sequence is not one that append accepts.

KEYS  1 seq
ARGV  1 run id of the server behind this connection   2 limit

Returns nothing.
]]
local run, limit = unpack(redis.call('HMGET', KEYS[1], 'run', 'limit'))
if run == ARGV[1] and tonumber(ARGV[2]) > tonumber(limit) then redis.call('HSET', KEYS[1], 'limit', ARGV[2]) end
