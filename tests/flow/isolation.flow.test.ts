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

test('HEL7 C124: what is told to all devices of a tenant reaches none of fifty others on the same edges', async () => {
  const world = await makeWorld();
  const [one, other] = [await world.tenant(), await world.tenant()];
  const agent = one.agent();
  await agent.connect();
  const [phone, tablet] = [await one.join('phone', { edge: 0 }), await one.join('tablet', { edge: 1 })];
  const fifty = await Promise.all(Array.from({ length: 50 }, (_, n) => other.join(`b${n}`, { edge: n % 2, caps: { cursors: true } })));
  await world.advance(1_000);
  const before = fifty.map((device) => device.frames().length);

  const made = await phone.request('channel.create', { name: 'Plans' });
  const chat_id = made.payload.chat_id!;
  const kept = await phone.send('keep', { chat_id });
  const gone = await tablet.send('drop', { chat_id });
  const answers = [
    made,
    kept,
    gone,
    await tablet.request('channel.create', { kind: 'thread', parent_chat_id: chat_id, name: 'Aside' }),
    await tablet.request('channel.rename', { name: 'Other plans' }, { chat_id }),
    await phone.request('channel.set_default', {}, { chat_id }),
    await tablet.request('read.receipt', { message_id: kept.payload.message_id! }, { chat_id }),
    await phone.request('message.delete', { message_ids: [gone.payload.message_id!] }, { chat_id }),
    await phone.request('channel.set_default', {}, { chat_id: lane.chat_id }),
    await phone.request('channel.delete', {}, { chat_id }),
  ];
  expect(answers.filter(({ type }) => type === 'error')).toEqual([]);
  await world.advance(3_000);
  // It was told to whom it belongs.
  const heard = new Set(tablet.frames().map(({ type }) => type));
  for (const type of ['channel.created', 'channel.renamed', 'channel.list', 'message.deleted', 'channel.deleted'] as const)
    expect(heard).toContain(type);
  expect(phone.frames().map(({ type }) => type)).toContain('read.receipt');
  expect(fifty.map((device) => device.frames().length)).toEqual(before);
  for (const member of [...world.edges, ...world.sessions, ...world.workers]) member.kill();
  world.time.end();
});
