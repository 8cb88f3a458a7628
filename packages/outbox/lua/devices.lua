--[[
Every device that has a watermark or a live connection.

KEYS  1 marks   2 live

Returns four per device: device   watermark   edge and connection ('' when not live).
]]
-- include hold
-- include now
local now, seen, found = now_ms(), {}, {}
local function add(device, mark)
  local held = live_of(KEYS[2], device)
  if held and held.till <= now then held = nil end
  seen[device] = true
  if not mark and not held then return end
  found[#found + 1] = device
  found[#found + 1] = tonumber(mark or 0)
  found[#found + 1] = held and held.edge or ''
  found[#found + 1] = held and held.connection or ''
end
local marks = redis.call('HGETALL', KEYS[1])
for at = 1, #marks, 2 do add(marks[at], marks[at + 1]) end
for _, device in ipairs(redis.call('HKEYS', KEYS[2])) do
  if not seen[device] then add(device, nil) end
end
return found
