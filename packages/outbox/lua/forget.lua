--[[
Remove the entries of some messages, found by index.

KEYS  1 seq   2 log   3 ids   4 newest
ARGV  message ids

Returns how many readable entries went.
]]
-- include text
-- include log
local seq, log, ids, newest = unpack(KEYS)
local floor = tonumber(redis.call('HGET', seq, 'floor') or 0)
local gone = 0
for _, id in ipairs(ARGV) do
  for cursor in string.gmatch(redis.call('HGET', ids, id) or '', '%d+') do
    local entry = redis.call('XRANGE', log, cursor, cursor)[1]
    if entry then
      unindex(ids, newest, entry)
      redis.call('XDEL', log, entry[1])
      if tonumber(cursor) > floor then gone = gone + 1 end
    end
  end
  redis.call('HDEL', ids, id)
end
return gone
