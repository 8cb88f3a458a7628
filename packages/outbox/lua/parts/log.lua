--[[
Included where entries are read; needs text. An entry of the log has these fields, in this order, so that Redis stores their names once:
h head (opaque here)   m message ids, one per line   l lane   s supersedes   a appended at, ms   b body
]]
local MESSAGE_IDS, LANE, SUPERSEDES, APPENDED_AT, BODY = 4, 6, 8, 10, 12

local function cursor_of(entry) return tonumber(string.match(entry[1], '^%d+')) end

-- Take an entry out of the indexes; it is leaving the log.
local function unindex(ids, newest, entry)
  local cursor, fields = text(cursor_of(entry)), entry[2]
  for id in string.gmatch(fields[MESSAGE_IDS], '[^\n]+') do
    local left = {}
    for other in string.gmatch(redis.call('HGET', ids, id) or '', '%d+') do
      if other ~= cursor then left[#left + 1] = other end
    end
    if #left > 0 then redis.call('HSET', ids, id, table.concat(left, ',')) else redis.call('HDEL', ids, id) end
  end
  local key = fields[SUPERSEDES]
  if key ~= '' and redis.call('HGET', newest, key) == cursor then redis.call('HDEL', newest, key) end
end
