import { keyOf, memoryOutbox, redisOutbox } from '@iris/outbox';
import { contractLease_ms, describeOutbox } from '@iris/outbox/contract';
import { manualClock } from '@iris/runtime/testing';
import { Redis } from 'ioredis';
import { redisForTests } from './servers.js';

describeOutbox('memory', async () => {
  const clock = manualClock();
  const outbox = memoryOutbox({ clock, lease_ms: contractLease_ms });
  return {
    connect: async () => outbox.connect(),
    now: async () => clock.now(),
    pass: (ms) => clock.advance(ms),
    ageKeys: (_, ms) => clock.advance(ms),
    end: () => outbox.close(),
  };
});

describeOutbox('Redis', async () => {
  const { url, end } = await redisForTests();
  const redis = new Redis(url);
  const now = async () => {
    const [seconds, micros] = await redis.time();
    return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
  };
  return {
    connect: () => redisOutbox({ url, lease_ms: contractLease_ms }),
    now,
    async pass(ms) {
      const until = (await now()) + ms;
      while ((await now()) < until);
    },
    async ageKeys(tenant_id, ms) {
      await redis.hincrby(keyOf(tenant_id, 'seq'), 'keys_since', -ms);
      for (const name of ['keys', 'keys_before'] as const) {
        const left = await redis.pttl(keyOf(tenant_id, name));
        if (left > 0) await redis.pexpire(keyOf(tenant_id, name), left - ms);
      }
    },
    async end() {
      redis.disconnect();
      await end();
    },
  };
});
