import { frameTypes, rowOf, type UpType } from '@iris/protocol';
import { type AnyFrame, type Chance, lane, onStage } from '@iris/testkit';
import { describe, expect, test } from '@jest/globals';

const special = ['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty', 'valueOf', '__defineGetter__', 'then'];
const pure = () => {
  expect(Reflect.ownKeys(Object.prototype)).toEqual(ownKeys);
  expect(Reflect.ownKeys(Array.prototype)).toEqual(arrayKeys);
  expect(({} as Record<string, unknown>).polluted).toBeUndefined();
};
const ownKeys = Reflect.ownKeys(Object.prototype);
const arrayKeys = Reflect.ownKeys(Array.prototype);

describe('C103 ENV15: special keys and ids are data like any other', () => {
  test('as ids of every kind, from a device', () =>
    onStage(async ({ world, agent, a, b }) => {
      for (const id of special) {
        for (const [type, payload, scope] of [
          ['history', {}, { chat_id: id }],
          ['history', { before_message_id: id }, lane],
          ['message.send', { text: 'x' }, { chat_id: id }],
          ['message.send', { text: 'x' }, { chat_id: lane.chat_id, thread_id: id }],
          ['message.send', { text: 'x', reply_to: id }, lane],
          ['message.send', { text: 'x', media_refs: [id] }, lane],
          ['read.receipt', { message_id: id }, lane],
          ['picker.select', { picker_id: id, value: id }, {}],
          ['channel.rename', { name: 'x' }, { chat_id: id }],
          ['channel.delete', {}, { chat_id: lane.chat_id, thread_id: id }],
          ['channel.set_default', {}, { chat_id: id }],
          ['channel.create', { name: 'x', kind: 'thread', parent_chat_id: id }, {}],
          ['agent.stop', {}, { chat_id: id }],
          ['agent.steer', { text: 'x' }, { chat_id: id }],
          ['search', { query: id, scope: 'chat' }, { chat_id: id }],
        ] as const)
          expect([type, id, await a.request(type, payload as never, scope)]).toMatchObject([
            type,
            id,
            { type: 'error', payload: { code: 'not_found' } },
          ]);
        expect((await a.request('message.delete', { message_ids: [id] }, lane)).payload.message_ids).toEqual([id]);
        const echo = await a.send(id, { client_ref: id });
        expect(echo.payload).toMatchObject({ text: id, client_ref: id });
        expect((await a.send(id, { client_ref: id })).payload.message_id).toBe(echo.payload.message_id);
        expect((await a.request('channel.create', { name: id })).payload.name).toBe(id);
        expect((await a.request('commands.complete', { prefix: id })).payload.matches).toEqual([]);
        expect(await a.request('fcm.register', { fcm_token: id })).toMatchObject({ type: 'ack' });
        expect(await a.request('ping', { ts: 1 }, { id })).toMatchObject({ type: 'pong', id });
        expect(await a.request(id, {})).toMatchObject({ type: 'error', payload: { code: 'unsupported' } });
        (await agent.turn()).end();
        await b.next((frame) => frame.type === 'agent.idle');
      }
      await world.advance(200);
      pure();
    }));

  test('as names of devices', () =>
    onStage(
      async ({ tenant, a }) => {
        for (const id of special) {
          const device = await tenant.join(id);
          expect((await device.request('ping', { ts: 1 })).type).toBe('pong');
          const { payload } = await a.send(`for ${id}`);
          await device.next('message');
          expect(await device.request('read.receipt', { message_id: payload.message_id! }, lane)).toMatchObject({ type: 'ack' });
          expect((await a.next('read.receipt')).payload).toMatchObject({ device_id: id });
          device.cut();
          await device.join();
          await device.sync();
        }
        pure();
      },
      { agent: false },
    ));

  test('as keys of payloads, which change nothing', () =>
    onStage(
      async ({ world, a, b }) => {
        const inside =
          '"__proto__":{"polluted":true,"text":"no","chat_id":"x"},"constructor":{"prototype":{"polluted":true}},"prototype":1';
        a.raw(`{"id":1,"type":"message.send",${inside},"payload":{"text":"one",${inside}}}`);
        expect((await b.next('message')).payload.text).toBe('one');
        a.raw(`{"id":2,"type":"history","chat_id":"${lane.chat_id}","payload":{${inside}}}`);
        expect((await a.next('history')).payload.messages).toHaveLength(1);
        a.raw(`{"id":3,"type":"channel.create","payload":{${inside}}}`);
        expect((await a.next('error')).payload.message).toMatch(/^name/);
        a.raw(`{"__proto__":{"type":"ping","id":4},"payload":{}}`);
        expect((await a.next('error')).payload.code).toBe('unsupported');
        a.raw(`{"id":5,"type":"ping","payload":{"ts":1,${inside}}}`);
        await a.next('pong');
        await world.settle();
        pure();
      },
      { agent: false },
    ));

  test('from an agent: as its own ids and as keys of what passes through', () =>
    onStage(
      async ({ agent, a, b }) => {
        for (const id of special) {
          await a.send(`question ${id}`);
          const turn = await agent.turn();
          turn.start(id);
          turn.delta(`text of ${id}`, id);
          turn.toolStart(0, id);
          turn.toolEnd(0, {}, id);
          turn.picker('choice', { picker_id: id, choices: [{ value: id, label: id }] });
          const picker = await b.next('picker.choice');
          expect(await b.request('picker.select', { picker_id: picker.payload.picker_id!, value: id })).toMatchObject({ type: 'ack' });
          expect((await agent.next('picker.select')).payload).toEqual({ picker_id: id, value: id });
          turn.stop({ message_id: id });
          expect((await b.next('message.stop')).payload.final_text).toBe(`text of ${id}`);
          turn.end();
          await b.next('agent.idle');
        }
        await a.send('raw');
        const turn = await agent.turn();
        const args = '{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}},"a":[{"__proto__":null}]}';
        const more = JSON.parse(args) as Record<string, unknown>;
        turn.toolStart(1, 'x', { args: more });
        turn.picker('confirm', { choices: [{ value: 'y', label: 'Y' }], more });
        const tool = await b.next('tool.start');
        expect(JSON.stringify(tool.payload.args)).toBe(args);
        const shown = await b.next('picker.confirm');
        expect(JSON.stringify((shown.payload as Record<string, unknown>).more)).toBe(args);
        turn.end();
        await a.next((frame) => frame.type === 'agent.idle' && a.frames('agent.idle').length === special.length + 1);
        pure();
      },
      { unchecked: true },
    ));
});

describe('C119 ENV27: what is another tenant’s reads as what never was, in every request and every field', () => {
  test('and nothing happens there', () =>
    onStage(async ({ world, tenant, agent, a, b }) => {
      const { payload } = await a.request('channel.create', { name: 'ours' });
      const ours = { chat_id: payload.chat_id! };
      const thread = await a.request('channel.create', { name: 'thread', kind: 'thread', parent_chat_id: ours.chat_id });
      const said = await a.send('secret', ours);
      const turn = await agent.turn();
      turn.picker('choice', { choices: [{ value: 'y', label: 'Y' }] });
      const picker_id = (await b.next('picker.choice')).payload.picker_id!;
      const message_id = said.payload.message_id!;
      const mine = (await world.tenant()) && (await (await world.tenant()).join('stranger'));
      const before = tenant.log.length;
      const compare = async (type: string, foreign: readonly [object, object], unknown: readonly [object, object]) => {
        const answers: AnyFrame[] = [];
        for (const [content, scope] of [foreign, unknown]) answers.push(await mine.request(type, content as never, scope));
        const [first, second] = answers.map(({ id: _, ...rest }) => rest);
        expect([type, first]).toEqual([type, second]);
        return first!;
      };
      const never = { chat_id: 'android:chan_999' };
      for (const [type, content] of [
        ['message.send', { text: 'x' }],
        ['message.send', { text: 'x', auto_thread: true }],
        ['history', {}],
        ['agent.stop', {}],
        ['agent.steer', { text: 'x' }],
        ['channel.rename', { name: 'x' }],
        ['channel.delete', {}],
        ['channel.set_default', {}],
        ['message.delete', { message_ids: [message_id] }],
        ['read.receipt', { message_id }],
        ['search', { query: 'secret', scope: 'chat' }],
      ] as const) {
        expect(await compare(type, [content, ours], [content, never])).toMatchObject({ type: 'error', payload: { code: 'not_found' } });
        await compare(type, [content, { ...ours, thread_id: thread.payload.thread_id }], [content, { ...never, thread_id: 't_999' }]);
        // The same place in the channel that both have.
        await compare(type, [content, { ...lane, thread_id: thread.payload.thread_id }], [content, { ...lane, thread_id: 't_999' }]);
      }
      for (const [type, foreign, unknown] of [
        ['message.send', { text: 'x', reply_to: message_id }, { text: 'x', reply_to: 'm_never' }],
        ['history', { before_message_id: message_id }, { before_message_id: 'm_never' }],
        ['read.receipt', { message_id }, { message_id: 'm_never' }],
        ['picker.select', { picker_id, value: 'y' }, { picker_id: 'p_never', value: 'y' }],
        [
          'channel.create',
          { name: 'x', kind: 'thread', parent_chat_id: ours.chat_id },
          { name: 'x', kind: 'thread', parent_chat_id: never.chat_id },
        ],
      ] as const)
        expect(await compare(type, [foreign, lane], [unknown, lane])).toMatchObject({ type: 'error', payload: { code: 'not_found' } });
      // Listed, as what never was, and gone nowhere.
      expect((await mine.request('message.delete', { message_ids: [message_id] }, lane)).payload.message_ids).toEqual([message_id]);
      expect((await mine.request('search', { query: 'secret' })).payload.hits).toEqual([]);
      await world.advance(1_000);
      expect(tenant.log).toHaveLength(before);
      expect(turn.stopped).toBe(false);
      expect((await a.history(ours)).payload.messages).toHaveLength(1);
      expect(mine.frames((frame) => JSON.stringify(frame).includes('secret') && frame.type !== 'search.results')).toEqual([]);
      turn.end();
      await b.next('agent.idle');
    }));
});

/** Values that some field may not expect. */
function odd(dice: Chance, known: readonly string[], depth = 0): unknown {
  const kind = dice.between(0, depth > 3 ? 9 : 12);
  if (kind === 0) return null;
  if (kind === 1) return dice.happens(0.5);
  if (kind === 2) return dice.pick([0, -1, 1.5, 2 ** 31, 2 ** 53, -(2 ** 53), 1e308, 4_070_908_800_000]);
  if (kind <= 5) return dice.pick(known);
  if (kind <= 8)
    return dice.pick([
      '',
      ' ',
      '\u0000',
      '\ud800',
      'x'.repeat(129),
      '/stop',
      '/model x',
      '\u202e',
      '😀',
      '%_\\',
      "'; DROP TABLE message; --",
      ...special,
    ]);
  if (kind === 9) return dice.pick(['x'.repeat(5_000), '9'.repeat(400), '[', '{"a":1}']);
  if (kind === 10) return Array.from({ length: dice.between(0, 4) }, () => odd(dice, known, depth + 1));
  return Object.fromEntries(
    Array.from({ length: dice.between(0, 4) }, (_, i) => [dice.pick([...special, `k${i}`]), odd(dice, known, depth + 1)]),
  );
}
const schemaFields = (type: UpType): string[] => {
  const schema = rowOf(type)!.up!.schema as { properties?: Record<string, unknown> };
  return Object.keys(schema.properties ?? {});
};

test.each([[1], [2], [3], [4]])(
  'C100 ENV21 ENV26: frames of every type with anything in them: each request is answered once, none with internal, and others go on (seed %i)',
  (seed) =>
    onStage(
      async ({ world, tenant, agent, a, b }) => {
        const dice = world.chance.fork(`odd ${seed}`);
        const { payload } = await a.request('channel.create', { name: 'one' });
        const thread = await a.request('channel.create', { name: 'two', kind: 'thread', parent_chat_id: payload.chat_id! });
        const said = await a.send('something to point at');
        const turn = await agent.turn();
        turn.picker('clarify', { question: 'Well?' });
        const picker = await b.next('picker.clarify');
        const known = [
          lane.chat_id,
          payload.chat_id!,
          thread.payload.thread_id!,
          said.payload.message_id!,
          picker.payload.picker_id!,
          'thread',
          'channel',
          'all',
          'chat',
          'text',
        ];
        // Media are asked about elsewhere, and a hello is said once.
        const types = frameTypes.filter((type): type is UpType => rowOf(type)!.up !== undefined && !/^(hello|media)/.test(type));
        const hostile = await tenant.join('hostile', { edge: 0 });
        const asked: Promise<AnyFrame>[] = [];
        for (let i = 0; i < 1_500; i++) {
          const type = dice.happens(0.02) ? dice.pick(['error', 'message', 'nothing', ...special]) : dice.pick(types);
          const fields = rowOf(type)?.up ? schemaFields(type as UpType) : [];
          const content = Object.fromEntries(
            [...fields, ...(dice.happens(0.1) ? special : [])].filter(() => dice.happens(0.8)).map((field) => [field, odd(dice, known)]),
          );
          const scope = {
            ...(dice.happens(0.8) ? { chat_id: odd(dice, known) as string } : {}),
            ...(dice.happens(0.3) ? { thread_id: odd(dice, known) as string } : {}),
          };
          asked.push(hostile.request(type, content as never, { ...scope, within_ms: 60_000 }));
          if (i % 50 === 49) await world.advance(20);
        }
        for (const answer of await Promise.all(asked)) if (answer.type === 'error') expect(answer.payload.code).not.toBe('internal');
        await world.advance(1_000);
        expect(hostile.connected).toBe(true);
        expect(hostile.connections).toHaveLength(1);
        pure();
        for (const one of agent.turns.values()) {
          if (one.state === 'offered') one.accept();
          one.end();
          await world.advance(50);
        }
        // Everyone else lives.
        expect((await b.request('ping', { ts: 1 })).type).toBe('pong');
        expect((await b.history(lane)).type).toMatch(/history|error/);
        const late = await tenant.join('late', { edge: 1 });
        expect((await late.sync(0)).type).toBe('sync.done');
      },
      {
        seed,
        quotas: {
          frames_burst: 100_000,
          frames_per_second: 100_000,
          sends_burst: 100_000,
          sends_per_second: 100_000,
          waiting_per_lane: 100_000,
        },
        unchecked: true,
      },
    ),
  120_000,
);
