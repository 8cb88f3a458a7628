--[[
A device says hello: its connection becomes the live one, and its edge one that appends are sent to. One step with reading the head, so
that every later append knows the edge.

KEYS  1 seq   2 marks   3 live   4 edges   5 holds
ARGV  1 run id of the server behind this connection   2 device   3 edge   4 connection   5 watermark   6 '1' for a new device   7 lease, ms

Returns 'unseeded', without any effect, as append does. Else {head, floor, watermark, edge and connection it replaces ('' none)}.
]]
-- include text
-- include hold
-- include now
local seq, marks, live, edges, holds = unpack(KEYS)
local _, device, edge, connection, given, new, lease = unpack(ARGV)
local run, head, floor = unpack(redis.call('HMGET', seq, 'run', 'head', 'floor'))
if run ~= ARGV[1] then return 'unseeded' end
local kept = redis.call('HGET', marks, device)
local mark = math.max(tonumber(kept or 0), tonumber(given))
if not kept and new == '1' then mark = tonumber(head) end
redis.call('HSET', marks, device, text(mark))
local held = live_of(live, device)
hold(live, edges, holds, device, edge, connection, text(now_ms() + tonumber(lease)))
local replaced = held and held.connection ~= connection
return { tonumber(head), tonumber(floor), mark, replaced and held.edge or '', replaced and held.connection or '' }
