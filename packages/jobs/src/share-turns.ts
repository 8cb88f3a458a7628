import type { JobName, Share } from './jobs.js';

/** Whose job is next: the lowest place is, and BullMQ calls it priority. */
export interface ShareTurns {
  /** The place of one more job of a tenant. */
  place(name: JobName, share: Share): Promise<number>;
  /** A job of this place has begun. */
  reached(name: JobName, place: number | undefined): Promise<void>;
}

/**
 * Start-time fair queueing, in a hash beside each queue: `at` is the place of the job that began last, `t:<tenant>` where the tenant's next one
 * stands. A job's place is the later of the two, and the tenant's next one stands behind it by what a job costs at its weight: so places of
 * those who wait mix by weight, and who was away begins where all are. When nothing waits, and nothing was placed a moment ago that may be on its
 * way into the queue, it all begins anew.
 *
 * KEYS hash, `wait`, `prioritized`, `delayed` of the queue; ARGV tenant, cost. Returns the place, counted from 1.
 */
const place = `
local now = tonumber(redis.call('TIME')[1])
local waits = redis.call('LLEN', KEYS[2]) + redis.call('ZCARD', KEYS[3]) + redis.call('ZCARD', KEYS[4])
if waits == 0 and now - tonumber(redis.call('HGET', KEYS[1], 'placed') or '0') > 10 then redis.call('DEL', KEYS[1]) end
local at = tonumber(redis.call('HGET', KEYS[1], 'at') or '0')
local own = tonumber(redis.call('HGET', KEYS[1], 't:' .. ARGV[1]) or '0')
local start = math.max(at, own)
redis.call('HSET', KEYS[1], 't:' .. ARGV[1], string.format('%.6f', start + tonumber(ARGV[2])))
redis.call('HSET', KEYS[1], 'placed', now)
redis.call('EXPIRE', KEYS[1], 604800)
return math.floor(start) + 1
`;
/** KEYS hash; ARGV place. */
const reached = `
if redis.call('EXISTS', KEYS[1]) == 1 and tonumber(redis.call('HGET', KEYS[1], 'at') or '0') < tonumber(ARGV[1]) - 1 then
  redis.call('HSET', KEYS[1], 'at', tonumber(ARGV[1]) - 1)
end
`;
/** What a job of weight 1 costs: fine enough for weights up to it, and coarse enough for 20,000 jobs of it in a queue that is never empty. */
const unit = 100;
/** BullMQ's last place. Whoever gets there waits in order of coming. */
const placeMax = 2 ** 21;

/** As ioredis has it. */
interface Scripts {
  eval(script: string, keys: number, ...given: (string | number)[]): Promise<unknown>;
}

export function shareTurns(client: Scripts, prefix: string): ShareTurns {
  const keyOf = (name: JobName, of: string) => `${prefix}:${name}:${of}`;
  return {
    async place(name, { tenant_id, weight }) {
      const keys = ['shares', 'wait', 'prioritized', 'delayed'].map((of) => keyOf(name, of));
      const found = await client.eval(place, keys.length, ...keys, tenant_id, unit / weight);
      return Math.min(Number(found), placeMax);
    },
    async reached(name, at) {
      if (at !== undefined && at > 1) await client.eval(reached, 1, keyOf(name, 'shares'), at);
    },
  };
}
