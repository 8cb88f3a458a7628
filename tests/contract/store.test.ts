import { manualClock } from '@iris/runtime/testing';
import { memoryStore, migrate, prismaStore } from '@iris/store';
import { describeStore } from '@iris/store/contract';
import { databaseForTests } from './postgres-servers.js';

describeStore('store in memory', async () => {
  const clock = manualClock();
  const store = memoryStore(clock);
  return { a: store, b: store, clock, close: () => store.close() };
});

describeStore('store in Postgres', async () => {
  const database = await databaseForTests();
  await migrate(database.url);
  const clock = manualClock();
  const [a, b] = [prismaStore({ url: database.url, clock }), prismaStore({ url: database.url, clock })];
  return {
    a,
    b,
    clock,
    async close() {
      await Promise.all([a.close(), b.close()]);
      await database.end();
    },
  };
});
