-- Included where the log is cut; needs text and log.
-- Take the oldest entries, up to `most`, out of log and indexes while `goes(cursor, entry)`. Returns how many went.
local function sweep(log, ids, newest, most, goes)
  local gone, last = 0, nil
  while gone < most do
    local page = redis.call('XRANGE', log, last and '(' .. last or '-', '+', 'COUNT', math.min(32, most - gone))
    local stop = #page == 0
    for _, entry in ipairs(page) do
      if not goes(cursor_of(entry), entry) then stop = true break end
      unindex(ids, newest, entry)
      last = entry[1]
      gone = gone + 1
    end
    if stop then break end
  end
  if last then redis.call('XTRIM', log, 'MINID', '=', text(tonumber(string.match(last, '^%d+')) + 1)) end
  return gone
end

-- Where `max_frames` frames begin: cursors that seeds left out are none. What several left out counts until the newest jump is past.
local function beyond(head, max_frames, seeded, skipped)
  local floor = head - max_frames
  if skipped and floor < seeded then return floor - skipped end
  return floor
end
