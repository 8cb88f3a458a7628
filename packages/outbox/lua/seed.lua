--[[
Start the tenant's sequence, unless it has one that append accepts. It never steps back: if what is there had got beyond `at`, it
goes on from there. What was logged is forgotten, unless it reaches up to `last_known`, so that nothing of it was lost; who listens and the
watermarks stay.

KEYS  1 seq   2 log   3 keys   4 keys_before   5 ids   6 newest   7 values
ARGV  1 run id of the server behind this connection   2 at   3 limit   4 last_known ('' not told)

Returns 1 when it was seeded, 0 when it was already.
]]
-- include text
local seq = KEYS[1]
local run, old, skipped = unpack(redis.call('HMGET', seq, 'run', 'head', 'skipped'))
if run == ARGV[1] then return 0 end
local at = math.max(tonumber(ARGV[2]), tonumber(old or 0))
if old and ARGV[4] ~= '' and tonumber(ARGV[4]) <= tonumber(old) then
  redis.call('UNLINK', KEYS[7])
  redis.call('HSET', seq, 'run', ARGV[1], 'head', text(at), 'seeded', text(at), 'limit', ARGV[3], 'known', text(tonumber(old)),
    'previous', text(tonumber(old)), 'skipped', text(at - tonumber(old) + tonumber(skipped or 0)))
  return 1
end
redis.call('UNLINK', unpack(KEYS))
redis.call('HSET', seq, 'run', ARGV[1], 'head', text(at), 'floor', text(at), 'seeded', text(at), 'limit', ARGV[3])
if ARGV[4] ~= '' then
  local known = math.min(tonumber(ARGV[4]), at)
  redis.call('HSET', seq, 'known', text(known), 'previous', text(known), 'skipped', text(at - known))
end
return 1
