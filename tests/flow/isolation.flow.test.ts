import { lane, makeWorld } from '@iris/testkit';
import { expect, test } from '@jest/globals';

test('HEL7 C124: tenants on the same edges hear nothing of each other', async () => {
  const world = await makeWorld();
  const parties = [];
  for (const word of ['alpha', 'beta', 'gamma']) {
    const tenant = await world.tenant();
    const agent = tenant.agent();
    await agent.connect();
    parties.push({ word, tenant, agent, devices: [await tenant.join('phone', { edge: 0 }), await tenant.join('tablet', { edge: 1 })] });
  }
  for (let round = 0; round < 5; round++)
    await Promise.all(
      parties.map(async ({ word, agent, devices }) => {
        await devices[round % 2]!.send(`${word} question ${round}`);
        const turn = await agent.turn();
        expect(turn.text).toBe(`${word} question ${round}`);
        turn.start();
        turn.delta(`${word} answer ${round}`);
        turn.stop();
        turn.end();
        await devices[0]!.next('agent.idle');
      }),
    );
  await world.advance(3_000);
  for (const { word, devices } of parties)
    for (const device of devices) {
      const others = parties.filter((other) => other.word !== word).map((other) => other.word);
      const heard = JSON.stringify(device.frames());
      for (const other of others) expect(heard).not.toContain(other);
      expect((await device.historyAll(lane)).map(({ text }) => text)).toHaveLength(10);
    }
});
