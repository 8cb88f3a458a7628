-- Included where leases or ages matter. The server's own clock, in ms: the one clock that all who call share.
local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
