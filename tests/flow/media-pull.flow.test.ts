import { randomBytes } from 'node:crypto';
import { onStage, pull, type Stage, sha256Of, upload } from '@iris/testkit';
import { expect, test } from '@jest/globals';

const KiB = 1024;

/** A file that phone has sent. */
async function sent({ a }: Pick<Stage, 'a'>, size: number): Promise<{ media_id: string; message_id: string; bytes: Uint8Array }> {
  const bytes = new Uint8Array(randomBytes(size));
  await upload(a, `mu_${size}`, bytes);
  const { payload } = await a.send(`file of ${size}`, { media_refs: [`mu_${size}`] });
  return { media_id: (payload.media as { media_id: string }[])[0]!.media_id, message_id: payload.message_id as string, bytes };
}

test('PUL2 ORD6: frames of 64 KiB, with others between them, which keep their order', () =>
  onStage(async (stage) => {
    const { b } = stage;
    const { media_id, bytes } = await sent(stage, 1_000 * KiB + 1);
    const pulling = pull(b, media_id);
    const pongs = await Promise.all(Array.from({ length: 20 }, (_, ts) => b.request('ping', { ts })));
    expect(pongs.map(({ payload }) => payload.ts)).toEqual(Array.from({ length: 20 }, (_, ts) => ts));
    expect(sha256Of((await pulling).bytes)).toBe(sha256Of(bytes));
    expect(b.binary.map(({ length }) => length)).toEqual([...Array.from({ length: 15 }, () => 64 * KiB), 40 * KiB + 1]);
  }));

test('PUL3: offset and length, as far as there are any bytes', () =>
  onStage(async (stage) => {
    const { b } = stage;
    const { media_id, bytes } = await sent(stage, 200 * KiB);
    for (const [offset, length] of [
      [0, 1],
      [3, 5],
      [64 * KiB - 1, 70 * KiB],
      [200 * KiB - 1, 100],
      [200 * KiB, undefined],
      [100, undefined],
    ] as const) {
      const got = await pull(b, media_id, { offset, ...(length === undefined ? {} : { length }) });
      expect(got.first).toMatchObject({ type: 'media.pull.ack', payload: { size: 200 * KiB } });
      expect(sha256Of(got.bytes)).toBe(sha256Of(bytes.subarray(offset, length === undefined ? undefined : offset + length)));
    }
    expect((await pull(b, media_id, { offset: 200 * KiB + 1 })).first).toMatchObject({
      type: 'error',
      payload: { code: 'unsupported', message: expect.stringMatching(/^offset/) },
    });
    for (const range of [{ offset: -1 }, { length: 0 }, { offset: 1.5 }])
      expect((await pull(b, media_id, range)).first).toMatchObject({ type: 'error', payload: { code: 'unsupported' } });
  }));

test('PUL4: one at a time, in the order of asking; one that is refused holds up no other', () =>
  onStage(async (stage) => {
    const { b } = stage;
    const [one, two] = [await sent(stage, 150 * KiB), await sent(stage, 100 * KiB)];
    const asked = [one.media_id, 'md_nothing', two.media_id, one.media_id].map((media_id) => b.request('media.pull', { media_id }));
    const answers = await Promise.all(asked);
    expect(answers.map(({ type }) => type)).toEqual(['media.pull.ack', 'error', 'media.pull.ack', 'media.pull.ack']);
    await b.next((frame) => frame.type === 'media.pull.end' && frame.id === answers[3]!.id);
    expect(sha256Of(Buffer.concat(b.binary))).toBe(sha256Of(Buffer.concat([one.bytes, two.bytes, one.bytes])));
  }));

test('PUL5 ENV27 C119: unknown, foreign, and not in a message yet: not_found, all alike; an own upload can be looked at', () =>
  onStage(async (stage) => {
    const { a, b, world, tenant } = stage;
    const { media_id } = await sent(stage, 10);
    const stranger = await (await world.tenant()).join('phone');
    await upload(a, 'mu_own', new Uint8Array([1, 2, 3]));
    const own = (await world.store.media.byRef(tenant.tenant_id, 'phone' as never, 'mu_own'))!.media_id;
    const refused = [
      await pull(stranger, media_id),
      await pull(stranger, 'md_nothing'),
      await pull(b, 'md_nothing'),
      await pull(b, own),
      await pull(b, '__proto__'),
    ];
    for (const { first } of refused) expect(first.payload).toEqual({ code: 'not_found', message: 'media_id unknown' });
    expect((await pull(a, own)).bytes).toEqual(Buffer.from([1, 2, 3]));
  }));

test('PUL2 OUT9: whoever does not read costs a bounded amount, and other frames are not kept from others', () =>
  onStage(
    async (stage) => {
      const { b, world } = stage;
      const { media_id, bytes } = await sent(stage, 8_000 * KiB);
      b.pause();
      const pulling = pull(b, media_id);
      pulling.catch(() => {});
      await world.advance(5_000);
      // What the client's kernel took, and a window.
      expect(world.edges[1]!.links.pairs.buffered).toBeLessThanOrEqual(256 * KiB);
      b.resume();
      expect(sha256Of((await pulling).bytes)).toBe(sha256Of(bytes));
    },
    { window_bytes: 256 * KiB },
  ));

// How fast a line is, and what is then in front of others: `edge/local/pull-window.test.ts`.
test('PUL2: for one who does not read, other frames stand behind one chunk of a pull, however many they are and however long it takes', () =>
  onStage(
    async (stage) => {
      const { a, b, world } = stage;
      const { media_id, bytes } = await sent(stage, 3_000 * KiB);
      b.pause();
      const pulling = pull(b, media_id);
      for (let n = 0; n < 5; n++) {
        await world.advance(500);
        await a.send(`said ${n}`);
      }
      b.resume();
      await pulling;
      const said = b.received.all.filter(({ frame }) => String(frame.payload.text).startsWith('said'));
      expect(said.map(({ frame, binaries }) => [frame.payload.text, binaries])).toEqual([0, 1, 2, 3, 4].map((n) => [`said ${n}`, 1]));
      expect(sha256Of(Buffer.concat(b.binary))).toBe(sha256Of(bytes));
    },
    { window_bytes: 1024 * KiB },
  ));

test('DEL4 CHA14 C117: with the last message that uses it a file is gone, for everyone', () =>
  onStage(async (stage) => {
    const { a, b, world, tenant } = stage;
    const { media_id, message_id } = await sent(stage, 1_000);
    await a.request('message.delete', { message_ids: [message_id] }, { chat_id: 'android:default' });
    expect((await pull(b, media_id)).first).toMatchObject({ type: 'error', payload: { code: 'not_found' } });
    const { chat_id } = (await a.request('channel.create', { name: 'other' })).payload as { chat_id: string };
    await upload(a, 'mu_1', new Uint8Array([1]));
    const echo = await a.send('there', { chat_id, media_refs: ['mu_1'] });
    const other = (echo.payload.media as { media_id: string }[])[0]!.media_id;
    expect((await pull(b, other)).bytes).toEqual(Buffer.from([1]));
    await a.request('channel.delete', {}, { chat_id });
    expect((await pull(b, other)).first).toMatchObject({ type: 'error', payload: { code: 'not_found' } });
    expect((await world.store.media.get(tenant.tenant_id, media_id))?.state ?? 'unused').toBe('unused');
  }));
