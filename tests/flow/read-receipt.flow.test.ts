import { lane, onStage, type TestDevice } from '@iris/testkit';
import { describe, expect, test } from '@jest/globals';

test('RCP1: when the agent has accepted, to the sending connection only', () =>
  onStage(async ({ world, agent, a, b }) => {
    const { payload } = await a.send('question');
    const turn = await agent.turn({ accept: false });
    await world.advance(5_000);
    expect(a.frames('read.receipt')).toEqual([]);
    turn.accept();
    expect(await a.next('read.receipt')).toMatchObject({ ...lane, payload: { message_id: payload.message_id } });
    turn.end();
    await b.next('agent.idle');
    expect(b.frames('read.receipt')).toEqual([]);
    expect(a.frames('read.receipt')).toHaveLength(1);
  }));

test('RCP2: the sender has gone: it gets it on its next connection, once, through any edge', () =>
  onStage(
    async ({ world, agent, a }) => {
      const { payload } = await a.send('question');
      const turn = await agent.turn({ accept: false });
      a.cut();
      await world.advance(1_000);
      turn.accept();
      turn.end();
      await world.advance(1_000);
      await a.join(world.edges[1]!.links.dial('/ws'));
      expect(await a.next('read.receipt')).toMatchObject({ payload: { message_id: payload.message_id } });
      a.cut();
      await a.join();
      await world.advance(1_000);
      expect(a.frames('read.receipt')).toHaveLength(1);
    },
    { unchecked: true },
  ));

test('RCP1 MSG12: messages that wait get theirs one by one', () =>
  onStage(async ({ agent, a, b }) => {
    const ids = [];
    for (const text of ['one', 'two', 'three']) ids.push((await a.send(text)).payload.message_id);
    for (let i = 0; i < 3; i++) {
      const turn = await agent.turn();
      expect((await a.next('read.receipt')).payload.message_id).toBe(ids[i]);
      expect(a.frames('read.receipt')).toHaveLength(i + 1);
      turn.end();
      await b.next('agent.idle');
    }
  }));

const ok = { type: 'ack', payload: { ok: true } };
const receipts = (device: TestDevice) => device.frames('read.receipt').filter(({ payload }) => payload.device_id !== undefined);

describe('a device has shown a message', () => {
  test('RCP3 RCP4 RCP5 SYN11: stored, told to every other device, and to offline ones by sync, the latest only', () =>
    onStage(
      async ({ world, tenant, a, b }) => {
        const away = await tenant.join('away', { caps: { cursors: true } });
        away.cut();
        const ids: string[] = [];
        for (const text of ['one', 'two', 'three']) ids.push((await a.send(text)).payload.message_id!);
        for (const [n, message_id] of ids.entries()) {
          expect(await b.request('read.receipt', { message_id }, lane)).toMatchObject(ok);
          expect(await a.next('read.receipt')).toMatchObject({ ...lane, payload: { message_id, device_id: 'tablet' } });
          expect(receipts(a)).toHaveLength(n + 1);
        }
        expect(await world.store.reads.list(tenant.tenant_id)).toMatchObject([{ device_id: 'tablet', ...lane, message_id: ids[2] }]);
        await away.join();
        await away.sync();
        expect(receipts(away)).toMatchObject([{ payload: { message_id: ids[2], device_id: 'tablet' } }]);
        // Not its own: neither live nor by sync.
        await b.sync(0);
        expect(receipts(b)).toEqual([]);
      },
      { agent: false },
    ));

  test('RCP3: forward only, by the message’s place, whatever its time; each device and lane for itself', () =>
    onStage(
      async ({ world, tenant, a, b }) => {
        const other = { chat_id: (await a.request('channel.create', { name: 'other' })).payload.chat_id! };
        const ids: string[] = [];
        for (const [n, text] of ['one', 'two', 'three'].entries()) {
          for (const { node } of world.sessions) node.clock.skew(-600_000 * n);
          ids.push((await a.send(text)).payload.message_id!);
        }
        for (const { node } of world.sessions) node.clock.skew(0);
        const elsewhere = (await a.send('elsewhere', other)).payload.message_id!;
        for (const message_id of [ids[1]!, ids[0]!, ids[1]!, ids[2]!, ids[0]!, ids[2]!])
          expect(await b.request('read.receipt', { message_id }, lane)).toMatchObject(ok);
        expect(await b.request('read.receipt', { message_id: elsewhere }, other)).toMatchObject(ok);
        expect(await a.request('read.receipt', { message_id: ids[0]! }, lane)).toMatchObject(ok);
        await b.next((frame) => frame.payload.device_id === 'phone');
        await world.settle();
        expect(receipts(a).map(({ payload }) => payload.message_id)).toEqual([ids[1], ids[2], elsewhere]);
        expect(receipts(b).map(({ payload }) => payload.message_id)).toEqual([ids[0]]);
        const away = await tenant.join('late');
        await away.sync(0);
        // Of each device the last of each lane.
        expect(receipts(away).map(({ payload }) => [payload.device_id, payload.message_id])).toEqual([
          ['tablet', ids[2]],
          ['tablet', elsewhere],
          ['phone', ids[0]],
        ]);
      },
      { agent: false },
    ));

  test('RCP5 ENV9 ENV27: unknown, foreign and deleted messages, and lanes they are not in', () =>
    onStage(
      async ({ world, tenant, a, b }) => {
        const stranger = await (await world.tenant()).join('stranger');
        const theirs = (await stranger.send('theirs')).payload.message_id!;
        const other = { chat_id: (await a.request('channel.create', { name: 'other' })).payload.chat_id! };
        const mine = (await a.send('mine')).payload.message_id!;
        const gone = (await a.send('gone')).payload.message_id!;
        await a.request('message.delete', { message_ids: [gone] }, lane);
        const unknown = await b.request('read.receipt', { message_id: 'm_never' }, lane);
        expect(unknown).toMatchObject({ type: 'error', payload: { code: 'not_found' } });
        for (const [message_id, scope] of [
          [theirs, lane],
          [gone, lane],
          [mine, other],
        ] as const)
          expect((await b.request('read.receipt', { message_id }, scope)).payload).toEqual(unknown.payload);
        for (const [payload, scope] of [
          [{ message_id: mine }, {}],
          [{}, lane],
          [{ message_id: 7 }, lane],
        ] as const)
          expect(await b.request('read.receipt', payload as never, scope)).toMatchObject({
            type: 'error',
            payload: { code: 'unsupported' },
          });
        // The spec's own spelling: the lane in the payload.
        expect(await b.request('read.receipt', { chat_id: lane.chat_id, message_id: mine })).toMatchObject(ok);
        expect(await a.next('read.receipt')).toMatchObject({ ...lane, payload: { message_id: mine } });
        expect(tenant.log.filter(({ frame }) => frame.type === 'read.receipt')).toHaveLength(1);
      },
      { agent: false },
    ));

  test('ENV20: without an id it acts the same and is answered by nothing', () =>
    onStage(
      async ({ world, a, b }) => {
        const { payload } = await a.send('one');
        await b.next('message');
        b.say('read.receipt', { message_id: payload.message_id! }, lane);
        await a.next('read.receipt');
        await world.settle();
        expect(b.frames('ack')).toEqual([]);
      },
      { agent: false },
    ));

  test('DEL2: with a message its receipts go', () =>
    onStage(
      async ({ tenant, a, b }) => {
        const ids: string[] = [];
        for (const text of ['one', 'two']) ids.push((await a.send(text)).payload.message_id!);
        for (const message_id of ids) await b.request('read.receipt', { message_id }, lane);
        await a.request('message.delete', { message_ids: [ids[1]!] }, lane);
        const late = await tenant.join('late');
        await late.sync(0);
        expect(late.frames((frame) => frame.payload.message_id === ids[1])).toEqual([]);
        // Forward only still: the place counts, not the message.
        await b.request('read.receipt', { message_id: ids[0]! }, lane);
        expect(receipts(a)).toHaveLength(2);
      },
      { agent: false },
    ));

  test('ENV24: the instance dies with it: it counts once', () =>
    onStage(
      async ({ world, tenant, a, b }) => {
        for (const wait of [15, 35, 55]) {
          const { payload } = await a.send(`message ${wait}`);
          world.backbone.faults = { ...world.backbone.faults, store_ms: [10, 10], outbox_ms: [10, 10] };
          const asked = b.request('read.receipt', { message_id: payload.message_id! }, lane);
          await world.advance(wait);
          for (const session of world.sessions) session.kill();
          world.backbone.faults = { ...world.backbone.faults, store_ms: [0, 0], outbox_ms: [0, 0] };
          await world.startSession();
          expect(await asked).toMatchObject(ok);
          await a.next((frame) => frame.type === 'read.receipt' && frame.payload.message_id === payload.message_id);
        }
        await world.advance(3_000);
        expect(receipts(a)).toHaveLength(3);
        expect(tenant.log.filter(({ frame }) => frame.type === 'read.receipt')).toHaveLength(3);
      },
      { agent: false },
    ));
});

describe('C49 C84 RCP6: one receipt of one device makes at most one frame per other device, and no push', () => {
  test('ten devices mark three hundred messages within a second', () =>
    onStage(
      async ({ world, tenant, a, b }) => {
        const ids: string[] = [];
        for (let i = 0; i < 300; i++) {
          ids.push((await a.send(`message ${i}`)).payload.message_id!);
          await world.advance(10);
        }
        const devices = [a, b];
        for (let i = 0; i < 8; i++) devices.push(await tenant.join(`d${i}`, { edge: i % 2 }));
        await world.settle();
        world.backbone.faults = { ...world.backbone.faults, store_ms: [1, 2], outbox_ms: [1, 2], bus_ms: [0, 1] };
        const start = world.time.now();
        const answers = devices.flatMap((device) => ids.map((message_id) => device.request('read.receipt', { message_id }, lane)));
        for (const answer of await Promise.all(answers)) expect(answer).toMatchObject(ok);
        // What comes at once is done together: nobody waits for three thousand writes.
        expect(world.time.now() - start).toBeLessThan(2_000);
        await world.advance(1_000);
        const said = tenant.log.filter(({ frame }) => frame.type === 'read.receipt');
        expect(said.length).toBeLessThanOrEqual(devices.length * ids.length);
        for (const device of devices) {
          const heard = receipts(device);
          expect(heard.every(({ payload }) => payload.device_id !== device.device_id)).toBe(true);
          expect(heard).toHaveLength(said.filter(({ except_device_id }) => except_device_id !== device.device_id).length);
          for (const other of devices) {
            if (other === device) continue;
            const of = heard.filter(({ payload }) => payload.device_id === other.device_id).map(({ payload }) => payload.message_id!);
            expect(new Set(of).size).toBe(of.length);
            // And the state is right everywhere.
            expect(of.at(-1)).toBe(ids.at(-1));
          }
        }
        const page = await world.backbone.outbox.read(tenant.tenant_id, 0, { limit: 10_000 });
        expect(page.entries.filter(({ type, push }) => type === 'read.receipt' && push)).toEqual([]);
        const late = await tenant.join('late');
        await late.sync(0);
        expect(receipts(late)).toHaveLength(devices.length);
        for (const { payload } of receipts(late)) expect(payload.message_id).toBe(ids.at(-1));
      },
      { agent: false, quotas: { waiting_per_lane: 1_000 } },
    ));

  test('one device, one after the other: each that moves forward is one frame', () =>
    onStage(
      async ({ world, tenant, a, b }) => {
        const ids: string[] = [];
        for (let i = 0; i < 30; i++) ids.push((await a.send(`message ${i}`)).payload.message_id!);
        for (const message_id of ids) await b.request('read.receipt', { message_id }, lane);
        await world.advance(200);
        expect(receipts(a).map(({ payload }) => payload.message_id)).toEqual(ids);
        expect(tenant.log.filter(({ frame }) => frame.type === 'read.receipt')).toHaveLength(30);
      },
      { agent: false },
    ));

  test('unknown ones among them are refused each for itself', () =>
    onStage(
      async ({ a, b }) => {
        const { payload } = await a.send('one');
        await b.next('message');
        const answers = await Promise.all(
          ['m_x', payload.message_id!, 'm_y', payload.message_id!].map((message_id) => b.request('read.receipt', { message_id }, lane)),
        );
        expect(answers.map(({ type }) => type)).toEqual(['error', 'ack', 'error', 'ack']);
        await a.next('read.receipt');
      },
      { agent: false },
    ));

  test('ORD2: a send behind it, and a deletion behind that, keep their order', () =>
    onStage(
      async ({ world, tenant, a, b }) => {
        const { payload } = await a.send('one');
        await b.next('message');
        const answers = await Promise.all([
          b.request('read.receipt', { message_id: payload.message_id! }, lane),
          b.send('two'),
          b.request('message.delete', { message_ids: [payload.message_id!] }, lane),
          b.request('read.receipt', { message_id: payload.message_id! }, lane),
        ]);
        expect(answers.map(({ type }) => type)).toEqual(['ack', 'message', 'message.deleted', 'error']);
        await world.settle();
        expect(tenant.log.map(({ frame }) => frame.type)).toEqual(['message', 'read.receipt', 'message', 'message.deleted']);
      },
      { agent: false },
    ));
});
