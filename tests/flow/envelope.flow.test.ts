import { lane, onStage, type TestDevice } from '@iris/testkit';
import { describe, expect, test } from '@jest/globals';

const refused = (field: string) => ({ code: 'unsupported', message: expect.stringMatching(new RegExp(`^${field}`)) });
/** The frames that come of it. Requests keep their order: when the one behind it is answered, it has had its effect. */
const comesOf = async (device: TestDevice, raw: string) => {
  device.received.skip();
  device.raw(raw);
  const behind = await device.history({ ...lane, limit: 1 });
  return device.received
    .rest()
    .map(({ frame }) => frame)
    .filter((frame) => frame !== behind);
};

describe('what is no frame', () => {
  test.each([
    ['not JSON', 'hello there'],
    ['cut JSON', '{"type":"ping"'],
    ['an array', '[]'],
    ['null', 'null'],
    ['a number', '7'],
    ['a string', '"ping"'],
    ['no type', '{}'],
    ['a type that is no string', '{"type":7}'],
    ['an empty text', ''],
  ])('ENV6 C100: %s is answered error unsupported, and the connection stays', (_, raw) =>
    onStage(async ({ a }) => {
      expect(await comesOf(a, raw)).toEqual([{ v: 1, type: 'error', payload: expect.objectContaining({ code: 'unsupported' }) }]);
    }),
  );

  test('ENV7 CLS1: ten of them within a minute close with 4400', () =>
    onStage(async ({ world, a, b }) => {
      for (let i = 0; i < 9; i++) {
        a.raw('{}');
        b.raw('{}');
      }
      await world.advance(61_000);
      for (let i = 0; i < 9; i++) a.raw('{}');
      await world.advance(1_000);
      expect(a.connected).toBe(true);
      a.raw('{}');
      expect((await a.closed()).code).toBe(4400);
      expect(b.connected).toBe(true);
    }));

  test('LIM3: 32 levels are read, 33 refused, with the id where it can be read', () =>
    onStage(async ({ a }) => {
      const nested = (levels: number) => `{"id":5,"type":"ping","payload":{"ts":1,"x":${'['.repeat(levels - 2)}${']'.repeat(levels - 2)}}}`;
      expect(await comesOf(a, nested(32))).toMatchObject([{ type: 'pong', id: 5 }]);
      expect(await comesOf(a, nested(33))).toMatchObject([{ type: 'error', id: 5, payload: { code: 'unsupported' } }]);
      expect(await comesOf(a, '['.repeat(100_000))).toMatchObject([{ type: 'error', payload: { code: 'unsupported' } }]);
    }));
});

describe('version and id', () => {
  test('ENV1 ENV2: v may be left out; another version is refused and the connection stays', () =>
    onStage(async ({ a }) => {
      expect(await comesOf(a, '{"type":"ping","id":1}')).toMatchObject([{ type: 'pong', id: 1 }]);
      for (const v of ['2', '0', '"1"', '1.5', '-1'])
        expect(await comesOf(a, `{"v":${v},"type":"ping","id":1}`)).toMatchObject([
          { type: 'error', id: 1, payload: { code: 'unsupported' } },
        ]);
    }));

  test('ENV3 ENV17: ids are echoed exactly', () =>
    onStage(async ({ a }) => {
      for (const id of [0, -5, Number.MAX_SAFE_INTEGER, 'x', '__proto__', 'ü😀', 'y'.repeat(64)])
        expect(await comesOf(a, JSON.stringify({ id, type: 'ping' }))).toMatchObject([{ type: 'pong', id }]);
    }));

  test.each([['""'], [`"${'x'.repeat(65)}"`], ['1.5'], ['9007199254740992'], ['true'], ['{}'], ['[1]']])(
    'ENV4: id %s is refused without an id, and nothing happens',
    (id) =>
      onStage(async ({ a, tenant }) => {
        const [error, ...more] = await comesOf(a, `{"id":${id},"type":"message.send","payload":{"text":"no"}}`);
        expect(error).toEqual({ v: 1, type: 'error', payload: expect.objectContaining({ code: 'unsupported' }) });
        expect(more).toEqual([]);
        expect(tenant.log).toEqual([]);
      }),
  );

  test('ENV5: id null is no id', () =>
    onStage(async ({ a }) => {
      const [pong] = await comesOf(a, '{"id":null,"type":"ping"}');
      expect(pong).toEqual({ v: 1, type: 'pong', payload: { server_ts: expect.any(Number) } });
    }));
});

describe('types and payloads', () => {
  test('ENV11: an unknown type is ignored without id and refused with one', () =>
    onStage(async ({ a }) => {
      for (const type of ['teleport', 'constructor', '__proto__', 'toString', 'hello.ack', 'message']) {
        expect(await comesOf(a, JSON.stringify({ type, payload: {} }))).toEqual([]);
        expect(await comesOf(a, JSON.stringify({ type, id: 3, payload: {} }))).toMatchObject([
          { type: 'error', id: 3, payload: { code: 'unsupported' } },
        ]);
      }
    }));

  test.each([
    ['payload', '{"type":"message.send","id":1,"payload":[]}'],
    ['payload', '{"type":"message.send","id":1,"payload":"text"}'],
    ['text', '{"type":"message.send","id":1,"payload":{"text":7}}'],
    ['text', '{"type":"message.send","id":1,"payload":{}}'],
    ['media_refs', '{"type":"message.send","id":1,"payload":{"text":"x","media_refs":"mu_1"}}'],
    ['client_ref', '{"type":"message.send","id":1,"payload":{"text":"x","client_ref":""}}'],
    ['chat_id', '{"type":"message.send","id":1,"chat_id":7,"payload":{"text":"x"}}'],
    ['cursor', '{"type":"sync","id":1,"payload":{"cursor":-1}}'],
    ['cursor', '{"type":"sync","id":1,"payload":{"cursor":1.5}}'],
    ['cursor', '{"type":"sync","id":1,"payload":{"cursor":"1"}}'],
    ['limit', '{"type":"history","id":1,"chat_id":"android:default","payload":{"limit":"50"}}'],
    ['chat_id', '{"type":"history","id":1,"payload":{}}'],
    ['chat_id', '{"type":"agent.stop","id":1,"payload":{}}'],
    ['scope', '{"type":"search","id":1,"payload":{"query":"x","scope":"everywhere"}}'],
    ['size', '{"type":"media.upload.start","id":1,"payload":{"media_ref":"mu_1","kind":"image","mime":"image/png","size":0}}'],
  ])('ENV9 ENV10 ENV14 SYN4 UPL6 STE4 ERR1 ERR3: a bad %s is named, and nothing is changed: %s', (field, raw) =>
    onStage(async ({ a, tenant }) => {
      expect(await comesOf(a, raw)).toMatchObject([{ type: 'error', id: 1, payload: refused(field) }]);
      expect(tenant.log).toEqual([]);
    }),
  );

  test('ENV10 ENV12: no payload is an empty one, unknown fields are ignored', () =>
    onStage(async ({ a }) => {
      expect(await comesOf(a, '{"type":"ping","id":1,"extra":[1],"payload":{"ts":3,"more":{}}}')).toMatchObject([
        { type: 'pong', payload: { ts: 3 } },
      ]);
      expect(await a.send('x', { someday: { deep: true } })).toMatchObject({ type: 'message' });
    }));

  test('ENV13: the envelope’s chat_id wins over the payload’s', () =>
    onStage(async ({ a }) => {
      expect(await a.request('history', { chat_id: 'android:chan_77' }, { chat_id: 'android:default' })).toMatchObject({ type: 'history' });
      expect(await a.request('history', { chat_id: 'android:default' })).toMatchObject({ type: 'history', chat_id: 'android:default' });
    }));

  test('ENV15: keys and ids of every object are data', () =>
    onStage(async ({ a }) => {
      expect(
        await comesOf(a, '{"type":"message.send","id":"constructor","__proto__":{"x":1},"payload":{"text":"t","__proto__":{"text":"no"}}}'),
      ).toMatchObject([{ type: 'message', id: 'constructor', payload: { text: 't' } }]);
      for (const chat_id of ['__proto__', 'toString', 'constructor'])
        expect(await a.request('history', {}, { chat_id })).toMatchObject({ type: 'error', payload: { code: 'not_found' } });
      expect(Object.keys(Object.prototype)).toEqual([]);
      expect(({} as { x?: unknown }).x).toBeUndefined();
    }));

  test('ENV16: text is carried exactly, but for U+0000 and lone surrogates', () =>
    onStage(async ({ a, b }) => {
      const text = ' \u202e שלום 👨‍👩‍👧‍👦 é \u200b\t\r\n\ufeff "\\ </script> ';
      await a.send(text);
      expect((await b.next('message')).payload.text).toBe(text);
      a.raw('{"type":"message.send","id":"n","payload":{"text":"a\\u0000b\\ud800c\\udc00d"}}');
      expect((await b.next('message')).payload.text).toBe('a\ufffdb\ufffdc\ufffdd');
      const page = await a.history({ chat_id: 'android:default' });
      expect(page.payload.messages?.map((one) => one.text)).toEqual([text, 'a\ufffdb\ufffdc\ufffdd']);
    }));

  test('UPL4: binary with no open upload is refused once', () =>
    onStage(async ({ world, a }) => {
      a.raw(new Uint8Array(10));
      a.raw(new Uint8Array(10));
      await world.settle();
      expect(a.frames('error')).toEqual([{ v: 1, type: 'error', payload: expect.objectContaining({ code: 'unsupported' }) }]);
    }));
});

describe('sizes', () => {
  test('LIM2: 64 KiB of text are taken, one byte more is refused by name', () =>
    onStage(async ({ a, b }) => {
      const text = `${'é'.repeat(32 * 1024 - 1)}xx`;
      expect(await a.send(text)).toMatchObject({ type: 'message' });
      expect((await b.next('message')).payload.text).toBe(text);
      expect(await a.send(`${text}x`)).toMatchObject({ type: 'error', payload: refused('text') });
    }));

  test('LIM4: ids and names have limits', () =>
    onStage(async ({ a }) => {
      expect(await a.send('x', { client_ref: 'r'.repeat(65) })).toMatchObject({ type: 'error', payload: refused('client_ref') });
      expect(await a.request('history', {}, { chat_id: 'c'.repeat(129) })).toMatchObject({ type: 'error', payload: refused('chat_id') });
      expect(await a.request('message.delete', { message_ids: [] }, { chat_id: 'android:default' })).toMatchObject({
        type: 'error',
        payload: refused('message_ids'),
      });
    }));
});

test('ENV19: every frame begins with the version', () =>
  onStage(
    async ({ a, b, agent, world, tenant }) => {
      const edge = world.edges[0]!;
      const raw: string[] = [];
      const wire = await edge.links.dial('/ws')({ message: (data) => raw.push(String(data)), ping() {}, closed() {} });
      wire.send(JSON.stringify({ type: 'hello', payload: { token: tenant.device_token, device_id: 'raw', caps: { cursors: true } } }));
      await world.settle();
      wire.send('{"type":"message.send","id":"mine","payload":{"text":"x"}}');
      wire.send('{"type":"nothing","id":7}');
      await a.send('y');
      await b.next('message');
      const turn = await agent.turn();
      turn.end();
      await b.next('agent.idle');
      await world.settle();
      expect(raw.length).toBeGreaterThan(6);
      for (const text of raw) expect(text.startsWith('{"v":1,')).toBe(true);
      wire.close();
    },
    { unchecked: true },
  ));
