--[[
A page of the log.

KEYS  1 seq   2 log   3 newest
ARGV  1 run id of the server behind this connection   2 after   3 most frames to look at   4 most bytes of bodies to give
      5 '1' to leave out what was superseded

Returns {next, head, floor, last_known (-1 none), 1 when append would accept the sequence, {cursor, head field, ids, body, …}}.
]]
-- include text
-- include log
local seq, log, newest = unpack(KEYS)
local run, head, floor, known = unpack(redis.call('HMGET', seq, 'run', 'head', 'floor', 'known'))
local after, limit, max_bytes, compact = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5] == '1'
if not head then return { after, 0, 0, -1, 0, {} } end
head, floor = tonumber(head), tonumber(floor)

local entries = {}
local next_, looked, given, bytes = math.max(after, floor), 0, 0, 0
local more = true
while more do
  -- A few at a time, one beyond the limit: bodies can be large, and the end of the log must be told from the end of the page.
  local page = redis.call('XRANGE', log, text(next_ + 1), '+', 'COUNT', math.min(32, limit - looked + 1))
  if #page == 0 then
    next_ = math.max(next_, head)
    break
  end
  for _, entry in ipairs(page) do
    if looked == limit then more = false break end
    local cursor, fields = cursor_of(entry), entry[2]
    local key = fields[SUPERSEDES]
    if not compact or key == '' or redis.call('HGET', newest, key) == text(cursor) then
      local size = #fields[BODY]
      if given > 0 and bytes + size > max_bytes then more = false break end
      given, bytes = given + 1, bytes + size
      entries[#entries + 1] = cursor
      entries[#entries + 1] = fields[2]
      entries[#entries + 1] = fields[MESSAGE_IDS]
      entries[#entries + 1] = fields[BODY]
    end
    looked = looked + 1
    next_ = cursor
  end
end
return { next_, head, floor, tonumber(known or -1), run == ARGV[1] and 1 or 0, entries }
