--[[
Drop what is past the retention, a part at a time, and then the leases that ran out. Called again until it says that it is done.

KEYS  1 seq   2 log   3 ids   4 newest   5 live   6 edges   7 holds
ARGV  1 max_frames   2 drop what was appended before this, ms   3 how many entries at most in this call

Returns {floor, 1 when there is more to drop}.
]]
-- include text
-- include log
-- include sweep
-- include hold
-- include now
local seq, log, ids, newest, live, edges, holds = unpack(KEYS)
local head, floor, seeded, skipped = unpack(redis.call('HMGET', seq, 'head', 'floor', 'seeded', 'skipped'))
if head then
  local before, most = tonumber(ARGV[2]), tonumber(ARGV[3])
  seeded = tonumber(seeded)
  floor = math.max(tonumber(floor), beyond(tonumber(head), tonumber(ARGV[1]), seeded, tonumber(skipped)))
  local gone = sweep(log, ids, newest, most, function(cursor, entry)
    local goes = cursor <= floor or tonumber(entry[2][APPENDED_AT]) < before
    if goes and cursor > floor then floor = cursor end
    return goes
  end)
  redis.call('HSET', seq, 'floor', text(floor))
  if floor > seeded then redis.call('HDEL', seq, 'known', 'skipped') end
  if gone == most then return { floor, 1 } end
end

local now = now_ms()
local devices = redis.call('HKEYS', live)
for _, device in ipairs(devices) do
  if live_of(live, device).till <= now then release(live, edges, holds, device) end
end
return { floor and tonumber(floor) or 0, 0 }
