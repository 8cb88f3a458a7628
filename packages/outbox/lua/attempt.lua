--[[
Take one from a bucket that all share, or give one back. The bucket is one number, the time at which it would be full again; the time is the server's.

KEYS  1 attempts
ARGV  1 milliseconds until one more   2 how many there are at once   3 1 takes, -1 gives back

Returns 0, or the milliseconds until there is one to take: then nothing was taken.
]]
local interval, room = tonumber(ARGV[1]), tonumber(ARGV[1]) * tonumber(ARGV[2])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local full_at = math.max(now, tonumber(redis.call('GET', KEYS[1]) or '0')) + interval * tonumber(ARGV[3])
if full_at - now > room then return math.ceil(full_at - now - room) end
if full_at > now then
  redis.call('SET', KEYS[1], string.format('%.3f', full_at), 'PX', math.ceil(full_at - now))
else
  redis.call('DEL', KEYS[1])
end
return 0
