--[[
Remove the entries of a lane among the next few. Called again from where it stopped: a whole log in one go would hold up everyone.

KEYS  1 seq   2 log   3 ids   4 newest
ARGV  1 lane   2 first cursor to look at   3 last one   4 how many to look at

Returns {how many readable entries went, the cursor to go on from, or 0 at the end}.
]]
-- include text
-- include log
local seq, log, ids, newest = unpack(KEYS)
local floor = tonumber(redis.call('HGET', seq, 'floor') or 0)
local gone, last = 0, nil
local page = redis.call('XRANGE', log, ARGV[2], ARGV[3], 'COUNT', ARGV[4])
for _, entry in ipairs(page) do
  last = cursor_of(entry)
  if entry[2][LANE] == ARGV[1] then
    unindex(ids, newest, entry)
    redis.call('XDEL', log, entry[1])
    if last > floor then gone = gone + 1 end
  end
end
return { gone, #page < tonumber(ARGV[4]) and 0 or last + 1 }
