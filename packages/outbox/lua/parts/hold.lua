--[[
Included by register, unregister and refresh. Who holds a device, and how many devices each edge holds:
live   device → edge \n connection \n lease ends at, ms      edges  edge, scored by when its last lease ends
holds  edge → how many devices in `live` name it
]]
local function live_of(live, device)
  local value = redis.call('HGET', live, device)
  if not value then return nil end
  local edge, connection, till = string.match(value, '^(.-)\n(.-)\n(%d+)$')
  return { edge = edge, connection = connection, till = tonumber(till) }
end

local function release(live, edges, holds, device)
  local held = live_of(live, device)
  if not held then return end
  redis.call('HDEL', live, device)
  if redis.call('HINCRBY', holds, held.edge, -1) <= 0 then
    redis.call('HDEL', holds, held.edge)
    redis.call('ZREM', edges, held.edge)
  end
end

local function hold(live, edges, holds, device, edge, connection, till)
  local held = live_of(live, device)
  if not held or held.edge ~= edge then
    release(live, edges, holds, device)
    redis.call('HINCRBY', holds, edge, 1)
  end
  redis.call('HSET', live, device, edge .. '\n' .. connection .. '\n' .. till)
  redis.call('ZADD', edges, 'GT', till, edge)
end
