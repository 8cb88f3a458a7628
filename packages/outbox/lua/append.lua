--[[
Give each frame the tenant's next cursor and log it, all or nothing.

KEYS  1 seq   2 log   3 keys   4 keys_before   5 ids   6 newest   7 edges
ARGV  1 run id of the server behind this connection   2 max_frames   3 how long keys are kept, ms
      then six per frame: key ('' none)   message ids, one per line   lane   supersedes ('' none)   head   body

Returns 'unseeded' when there is no sequence, or it was kept by another run of the server; 'exhausted' when the limit would be
passed; both without any effect. Else {previous, cursors, edges}: a cursor below zero belongs to a frame whose key was seen before.
]]
-- include text
-- include log
-- include sweep
-- include now
local seq, log, keys, keys_before, ids, newest, edges = unpack(KEYS)
local HEAD, PER_FRAME = 3, 6
local run, head, limit, floor, previous, skipped, seeded, keys_since =
  unpack(redis.call('HMGET', seq, 'run', 'head', 'limit', 'floor', 'previous', 'skipped', 'seeded', 'keys_since'))
if run ~= ARGV[1] then return 'unseeded' end
head, limit, floor, keys_since = tonumber(head), tonumber(limit), tonumber(floor), tonumber(keys_since or 0)
local max_frames, kept = tonumber(ARGV[2]), tonumber(ARGV[3])
local now = now_ms()

-- unpack() can take some thousand values and no more.
local function in_chunks(values, most, use)
  for from = 1, #values, most do use(from, math.min(from + most - 1, #values)) end
end
local function write_hash(hash, pairs_)
  in_chunks(pairs_, 2000, function(from, to) redis.call('HSET', hash, unpack(pairs_, from, to)) end)
end
local function look_up(hash, fields, found)
  in_chunks(fields, 1000, function(from, to)
    for i, value in ipairs(redis.call('HMGET', hash, unpack(fields, from, to))) do
      if value then found[fields[from + i - 1]] = value end
    end
  end)
end

-- Two generations of keys, the older one dropped when the newer is full-grown: nothing to sweep, and no timer per key.
if now >= keys_since + kept then
  if now < keys_since + 2 * kept and redis.call('EXISTS', keys) == 1 then
    redis.call('RENAME', keys, keys_before)
  else
    redis.call('UNLINK', keys, keys_before)
  end
  redis.call('HSET', seq, 'keys_since', text(now))
end

local asked, seen = {}, {}
for at = HEAD + 1, #ARGV, PER_FRAME do
  if ARGV[at] ~= '' then asked[#asked + 1] = ARGV[at] end
end
if #asked > 0 then
  look_up(keys_before, asked, seen)
  look_up(keys, asked, seen)
end

local cursors, fresh, new_keys = {}, {}, {}
local before = head
for at = HEAD + 1, #ARGV, PER_FRAME do
  local key = ARGV[at]
  local first = key ~= '' and seen[key]
  if first then
    cursors[#cursors + 1] = -tonumber(first)
  else
    head = head + 1
    cursors[#cursors + 1] = head
    fresh[#fresh + 1] = at
    if key ~= '' then
      seen[key] = head
      new_keys[#new_keys + 1] = key
      new_keys[#new_keys + 1] = text(head)
    end
  end
end
if head > limit then return 'exhausted' end

if head > before then
  local appended_at, cursor = text(now), before
  local messages, cursors_of, supersedes = {}, {}, {}
  for _, at in ipairs(fresh) do
    cursor = cursor + 1
    local place = text(cursor)
    redis.call('XADD', log, place .. '-0', 'h', ARGV[at + 4], 'm', ARGV[at + 1], 'l', ARGV[at + 2], 's', ARGV[at + 3],
      'a', appended_at, 'b', ARGV[at + 5])
    for id in string.gmatch(ARGV[at + 1], '[^\n]+') do
      if not cursors_of[id] then
        messages[#messages + 1] = id
        cursors_of[id] = {}
      end
      table.insert(cursors_of[id], place)
    end
    if ARGV[at + 3] ~= '' then
      supersedes[#supersedes + 1] = ARGV[at + 3]
      supersedes[#supersedes + 1] = place
    end
  end

  if #new_keys > 0 then
    write_hash(keys, new_keys)
    if redis.call('PTTL', keys) < 0 then redis.call('PEXPIRE', keys, text(2 * kept)) end
  end
  if #messages > 0 then
    local had, values = {}, {}
    look_up(ids, messages, had)
    for _, id in ipairs(messages) do
      values[#values + 1] = id
      values[#values + 1] = (had[id] and had[id] .. ',' or '') .. table.concat(cursors_of[id], ',')
    end
    write_hash(ids, values)
  end
  write_hash(newest, supersedes)

  floor = math.max(floor, beyond(head, max_frames, tonumber(seeded), tonumber(skipped)))
  redis.call('HSET', seq, 'head', text(head), 'floor', text(floor))
  if previous then redis.call('HDEL', seq, 'previous') end
  if skipped and floor > tonumber(seeded) then redis.call('HDEL', seq, 'known', 'skipped') end
  -- What is below the floor is out of sight already; its bytes go a part at a time.
  if redis.call('XLEN', log) > max_frames * 1.1 + 64 then
    sweep(log, ids, newest, 256, function(oldest) return oldest <= floor end)
  end
end

return { tonumber(previous or before), cursors, redis.call('ZRANGEBYSCORE', edges, '(' .. text(now), '+inf') }
