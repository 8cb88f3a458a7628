--[[
An edge says again which devices it holds: their leases begin anew, and what was lost is registered again.

KEYS  1 live   2 edges   3 holds
ARGV  1 edge   2 lease, ms   then two per device: device   connection

Returns the connections whose device is held by another one.
]]
-- include text
-- include hold
-- include now
local live, edges, holds = unpack(KEYS)
local till = text(now_ms() + tonumber(ARGV[2]))
local moved = {}
for at = 3, #ARGV, 2 do
  local device, connection = ARGV[at], ARGV[at + 1]
  local held = live_of(live, device)
  if held and held.connection ~= connection then
    moved[#moved + 1] = connection
  else
    hold(live, edges, holds, device, ARGV[1], connection, till)
  end
end
return moved
