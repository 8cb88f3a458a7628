--[[
A connection is gone. Does nothing when another has taken its device over.

KEYS  1 live   2 edges   3 holds
ARGV  1 device   2 connection

Returns nothing.
]]
-- include hold
local live, edges, holds = unpack(KEYS)
local held = live_of(live, ARGV[1])
if held and held.connection == ARGV[2] then release(live, edges, holds, ARGV[1]) end
