import { randomBytes } from 'node:crypto';
import { onStage, pull, sendBytes, sha256Of, type TestDevice, upload } from '@iris/testkit';
import { describe, expect, test } from '@jest/globals';

const KiB = 1024;
const bytesOf = (size: number) => new Uint8Array(randomBytes(size));
const refusal = (code: string, field?: string) => ({
  type: 'error',
  payload: { code, ...(field === undefined ? {} : { message: expect.stringMatching(new RegExp(`^${field}`)) }) },
});
const attach = (device: TestDevice, media_ref: string) => device.send(`${device.device_id} ${media_ref}`, { media_refs: [media_ref] });

describe('uploads', () => {
  test('UPL1 UPL8 MSG14 PUL1: bytes in, one ack with their hash; a message makes them a file that every device pulls, once', () =>
    onStage(async ({ a, b, tenant, agent }) => {
      const bytes = bytesOf(300 * KiB + 17);
      const ack = await upload(a, 'mu_1', bytes, { start: { kind: 'file', mime: 'text/plain', filename: 'notes.txt' } });
      expect(ack).toMatchObject({ type: 'media.upload.ack', payload: { ok: true, media_ref: 'mu_1', sha256: sha256Of(bytes) } });
      expect(tenant.log).toEqual([]);
      const echo = await attach(a, 'mu_1');
      const [entry] = echo.payload.media as { media_id: string }[];
      expect(entry).toMatchObject({
        media_id: expect.stringMatching(/^md_/),
        size: bytes.length,
        filename: 'notes.txt',
        sha256: sha256Of(bytes),
      });
      expect((await b.next('message')).payload.media).toEqual([entry]);
      const turn = await agent.turn();
      expect(turn.offer.message).toMatchObject({ media: [entry] });
      turn.accept();
      turn.end();
      for (const device of [a, b]) {
        const got = await pull(device, entry!.media_id);
        expect(got.first).toMatchObject({ type: 'media.pull.ack', payload: entry });
        expect(sha256Of(got.bytes)).toBe(sha256Of(bytes));
        expect(got.end).toMatchObject({ payload: { ok: true, media_id: entry!.media_id } });
      }
      expect(await attach(a, 'mu_1')).toMatchObject(refusal('not_found'));
    }));

  test('ENV20 UPL1: an upload without ids is stored the same, and answered by nothing', () =>
    onStage(async ({ a }) => {
      const bytes = bytesOf(10);
      a.say('media.upload.start', { media_ref: 'mu_1', kind: 'file', mime: 'a/b', size: 10 });
      a.raw(bytes);
      a.say('media.upload.end', { media_ref: 'mu_1' });
      expect(await attach(a, 'mu_1')).toMatchObject({ type: 'message', payload: { media: [{ size: 10 }] } });
      expect(a.frames(['media.upload.ack', 'error'])).toEqual([]);
    }));

  test('MSG3: a ref of another device, of another tenant, or of an upload that is not complete is unknown', () =>
    onStage(async ({ a, b, world }) => {
      await upload(a, 'mu_1', bytesOf(10));
      expect(await attach(b, 'mu_1')).toMatchObject(refusal('not_found'));
      const stranger = await (await world.tenant()).join('phone');
      expect(await attach(stranger, 'mu_1')).toMatchObject(refusal('not_found'));
      a.say('media.upload.start', { media_ref: 'mu_2', kind: 'file', mime: 'a/b', size: 10 });
      a.raw(bytesOf(10));
      expect(await attach(a, 'mu_2')).toMatchObject(refusal('not_found'));
      await a.request('media.upload.end', { media_ref: 'mu_2' });
      expect(await attach(a, 'mu_2')).toMatchObject({ type: 'message' });
    }));

  test('ORD2 UPL16: a message that names an upload whose end is not answered yet waits for it, and so does what comes behind it', () =>
    onStage(async ({ a }) => {
      a.say('media.upload.start', { media_ref: 'mu_1', kind: 'file', mime: 'a/b', size: 100 * KiB });
      sendBytes(a, bytesOf(100 * KiB));
      const answers = await Promise.all([
        a.request('media.upload.end', { media_ref: 'mu_1' }),
        a.send('first', { media_refs: ['mu_1'] }),
        a.send('second'),
        a.send('third'),
      ]);
      expect(answers.map(({ type }) => type)).toEqual(['media.upload.ack', 'message', 'message', 'message']);
      const said = (await a.historyAll({ chat_id: 'android:default' })).map(({ text }) => text);
      expect(said).toEqual(['first', 'second', 'third']);
    }));

  test('MSG4: the same send again, on another connection, has the same file; nothing happens twice', () =>
    onStage(async ({ a }) => {
      await upload(a, 'mu_1', bytesOf(10));
      const first = await a.send('here', { media_refs: ['mu_1'], client_ref: 'c1' });
      a.cut();
      await a.join();
      const second = await a.send('here', { media_refs: ['mu_1'], client_ref: 'c1' });
      expect(second.payload).toMatchObject({ message_id: first.payload.message_id, media: first.payload.media });
    }));

  test.each([
    ['zero', 0, 'unsupported', 'size'],
    ['negative', -1, 'unsupported', 'size'],
    ['fractional', 1.5, 'unsupported', 'size'],
    ['over the quota', 1_001, 'media_too_large', 'size'],
    ['as large as numbers go', 2 ** 60, 'media_too_large', 'size'],
  ])('UPL5 UPL6 LIM12: a size that is %s is refused at once', (_, size, code, field) =>
    onStage(
      async ({ a }) => {
        expect(await a.request('media.upload.start', { media_ref: 'mu_1', kind: 'file', mime: 'a/b', size })).toMatchObject(
          refusal(code, field),
        );
        expect(await upload(a, 'mu_1', bytesOf(1_000))).toMatchObject({ type: 'media.upload.ack' });
      },
      { quotas: { file_bytes: 1_000 } },
    ),
  );

  test('UPL2: a refused start is answered at once and its bytes are swallowed; an end under another id hears the same, under the same nothing', () =>
    onStage(
      async ({ a }) => {
        const start = { media_ref: 'mu_1', kind: 'file', mime: 'a/b', size: 2 ** 50 };
        const refused = await a.request('media.upload.start', start, { id: 7 });
        sendBytes(a, bytesOf(200 * KiB));
        expect(await a.request('media.upload.end', { media_ref: 'mu_1' })).toMatchObject({ type: 'error', payload: refused.payload });
        await a.request('media.upload.start', start, { id: 8 });
        a.raw(JSON.stringify({ type: 'media.upload.end', id: 8, payload: { media_ref: 'mu_1' } }));
        await a.request('ping');
        expect(a.frames('error').filter(({ id }) => id === 8)).toHaveLength(1);
        // Asked in one breath, without waiting: the same.
        a.raw(JSON.stringify({ type: 'media.upload.start', id: 9, payload: start }));
        a.raw(bytesOf(10));
        expect(await a.request('media.upload.end', { media_ref: 'mu_1' }, { id: 10 })).toMatchObject(refusal('media_too_large'));
        expect(a.frames('error').filter(({ id }) => id === 9)).toHaveLength(1);
        a.raw(JSON.stringify({ type: 'media.upload.start', id: 11, payload: start }));
        a.raw(JSON.stringify({ type: 'media.upload.end', id: 11, payload: { media_ref: 'mu_1' } }));
        await a.next((frame) => frame.id === 11);
        await a.request('history', {}, { chat_id: 'android:default' });
        expect(a.frames('error').filter(({ id }) => id === 11)).toHaveLength(1);
        expect(await upload(a, 'mu_1', bytesOf(10))).toMatchObject({ type: 'media.upload.ack' });
      },
      { unchecked: true },
    ));

  test('UPL3 UPL4 C91: one upload at a time; what has no upload is refused; other frames go on between its bytes', () =>
    onStage(async ({ a }) => {
      a.raw(bytesOf(10));
      a.raw(bytesOf(10));
      expect(await a.request('media.upload.end', { media_ref: 'mu_0' })).toMatchObject(refusal('unsupported'));
      expect(a.frames('error').filter(({ id }) => id === undefined)).toMatchObject([refusal('unsupported')]);
      const bytes = bytesOf(30);
      a.say('media.upload.start', { media_ref: 'mu_1', kind: 'file', mime: 'a/b', size: 30 });
      expect(await a.request('media.upload.start', { media_ref: 'mu_2', kind: 'file', mime: 'a/b', size: 5 })).toMatchObject(
        refusal('unsupported'),
      );
      a.raw(bytes.subarray(0, 11));
      expect(await a.request('ping')).toMatchObject({ type: 'pong' });
      a.raw(bytes.subarray(11, 12));
      expect(await a.send('between')).toMatchObject({ type: 'message' });
      a.raw(bytes.subarray(12));
      expect(await a.request('media.upload.end', { media_ref: 'mu_2' })).toMatchObject(refusal('unsupported'));
      expect(await a.request('media.upload.end', { media_ref: 'mu_1', sha256: sha256Of(bytes) })).toMatchObject({
        payload: { sha256: sha256Of(bytes) },
      });
    }));

  test('UPL7 C94: fewer bytes, more bytes, a hole, a wrong hash: refused, nothing is kept, and the name can be used again', () =>
    onStage(async ({ a, tenant, world }) => {
      const bytes = bytesOf(200 * KiB);
      const wrong = { sha256: sha256Of(bytesOf(3)) };
      const cases: [Uint8Array, Record<string, unknown>, Record<string, unknown>, string][] = [
        [bytes.subarray(0, 100 * KiB), { size: bytes.length }, {}, 'size'],
        [bytes, { size: bytes.length - 1 }, {}, 'size'],
        [
          Buffer.concat([bytes.subarray(0, 64 * KiB), bytes.subarray(128 * KiB)]),
          { size: bytes.length },
          { sha256: sha256Of(bytes) },
          'size',
        ],
        [bytes, {}, wrong, 'sha256'],
        [bytes, wrong, {}, 'sha256'],
        [bytes, wrong, { sha256: sha256Of(bytes) }, 'sha256'],
        [bytes, {}, { sha256: 'not a hash' }, 'sha256'],
      ];
      for (const [sent, start, end, field] of cases) {
        expect(await upload(a, 'mu_1', sent, { start, end })).toMatchObject(refusal('unsupported', field));
        expect(await attach(a, 'mu_1')).toMatchObject(refusal('not_found'));
      }
      await world.settle();
      expect(await world.store.media.storedBytes(tenant.tenant_id)).toBe(0);
      expect(await world.backbone.media.sweep(Number.MAX_SAFE_INTEGER)).toBe(0);
      expect(await upload(a, 'mu_1', bytes, { end: { sha256: sha256Of(bytes).toUpperCase() } })).toMatchObject({
        type: 'media.upload.ack',
      });
    }));

  test('C90: bytes stay in their order, whichever is faster, the storage or the answer whether they are wanted', async () => {
    for (const faults of [{ bus_ms: [20, 20] }, { store_ms: [20, 20] }] as const)
      await onStage(
        async ({ a, world }) => {
          const bytes = bytesOf(40 * KiB);
          a.say('media.upload.start', { media_ref: 'mu_1', kind: 'file', mime: 'a/b', size: bytes.length });
          for (let at = 0; at < bytes.length; at += KiB) {
            a.raw(bytes.subarray(at, at + KiB));
            await world.advance(1);
          }
          const ack = await a.request('media.upload.end', { media_ref: 'mu_1' });
          expect(ack).toMatchObject({ type: 'media.upload.ack', payload: { sha256: sha256Of(bytes) } });
        },
        { faults },
      );
  });

  test('C90: 50 sockets at once, into a storage that takes up to half a second: each file is as it was sent', () =>
    onStage(
      async ({ tenant, world }) => {
        const size = 1024 * KiB + 13;
        const devices = await Promise.all(Array.from({ length: 50 }, (_, n) => tenant.join(`d${n}`, { edge: n % 2 })));
        const files = devices.map(() => bytesOf(size));
        const pace = devices.map((_, n) => 20 * KiB + 997 * n);
        for (const device of devices) device.say('media.upload.start', { media_ref: 'mu', kind: 'file', mime: 'a/b', size });
        for (let round = 0; round * pace[0]! < size; round++) {
          for (const [n, device] of devices.entries()) {
            const at = round * pace[n]!;
            if (at < size) device.raw(files[n]!.subarray(at, at + pace[n]!));
          }
          await world.advance(7);
        }
        const acks = await Promise.all(devices.map((device) => device.request('media.upload.end', { media_ref: 'mu' })));
        expect(acks.map(({ payload }) => payload.sha256)).toEqual(files.map(sha256Of));
        world.backbone.faults = { ...world.backbone.faults, media_ms: [0, 0] };
        for (const [n, device] of devices.entries()) {
          const { media_id } = (await world.store.media.byRef(tenant.tenant_id, device.device_id as never, 'mu'))!;
          expect(sha256Of((await pull(device, media_id)).bytes)).toBe(sha256Of(files[n]!));
        }
      },
      { faults: { media_ms: [50, 500] } },
    ));

  test('C94: storage that fails in the middle is an error, never an ack; the connection goes on', () =>
    onStage(
      async ({ a, world }) => {
        world.backbone.failStore = true;
        const answer = upload(a, 'mu_1', bytesOf(100 * KiB));
        await world.advance(40_000);
        expect(await answer).toMatchObject(refusal('internal'));
        world.backbone.failStore = false;
        await world.advance(2_000);
        expect(await attach(a, 'mu_1')).toMatchObject(refusal('not_found'));
        expect(await upload(a, 'mu_1', bytesOf(10))).toMatchObject({ type: 'media.upload.ack' });
      },
      { expected: ['*'], unchecked: true },
    ));

  test('LIM12: where the storage stands still, who has more than a share of what all may keep comes later; who has less goes on', () =>
    onStage(
      async ({ a, b, world, tenant }) => {
        const c = await tenant.join('c');
        const [large, small] = [bytesOf(300 * KiB), bytesOf(100 * KiB)];
        for (const [device, bytes] of [
          [a, large],
          [b, small],
          [c, small],
        ] as const) {
          device.say('media.upload.start', { media_ref: 'mu_1', kind: 'file', mime: 'a/b', size: bytes.length });
          await device.request('ping');
        }
        world.backbone.faults = { ...world.backbone.faults, media_ms: [2_000, 2_000] };
        sendBytes(a, large.subarray(0, 250 * KiB));
        sendBytes(b, small);
        expect(await b.request('ping')).toMatchObject({ type: 'pong' });
        sendBytes(a, large.subarray(250 * KiB));
        sendBytes(c, small);
        const ends = [a, b, c].map((device) => device.request('media.upload.end', { media_ref: 'mu_1' }));
        expect(await ends[0]).toMatchObject({ type: 'error', payload: { code: 'rate_limited', retry_after_ms: 5_000 } });
        for (const end of ends.slice(1)) expect(await end).toMatchObject({ payload: { sha256: sha256Of(small) } });
        // Nothing of it waits any more.
        world.backbone.faults = { ...world.backbone.faults, media_ms: [0, 0] };
        expect(await upload(a, 'mu_2', large)).toMatchObject({ payload: { sha256: sha256Of(large) } });
      },
      { edges: 1, unchecked: true, edge_config: { uploads_pending_bytes: 600 * KiB, upload_end_ms: 120_000 } },
    ));

  test('LIM12: however many come with however little, while the storage stands still no more memory is taken than all may have', () =>
    onStage(
      async ({ world, tenant }) => {
        const bytes = bytesOf(20 * KiB);
        const devices = await Promise.all(Array.from({ length: 20 }, (_, n) => tenant.join(`d${n}`)));
        for (const device of devices) {
          device.say('media.upload.start', { media_ref: 'mu_1', kind: 'file', mime: 'a/b', size: bytes.length });
          await device.request('ping');
        }
        world.backbone.faults = { ...world.backbone.faults, media_ms: [2_000, 2_000] };
        for (const device of devices) {
          sendBytes(device, bytes);
          await device.request('ping');
        }
        const answers = await Promise.all(devices.map((device) => device.request('media.upload.end', { media_ref: 'mu_1' })));
        // A piece of memory has 64 KiB, and the last one may begin below the bound.
        expect(answers.map(({ type }) => type).filter((type) => type === 'media.upload.ack')).toHaveLength(5);
        for (const { type, payload } of answers) if (type === 'error') expect(payload.code).toBe('rate_limited');
      },
      { edges: 1, unchecked: true, edge_config: { uploads_pending_bytes: 300 * KiB, upload_end_ms: 120_000 } },
    ));

  test('LIM12: where nothing may wait for the storage any more, one who sends more is told when to come back; all others go on, on both edges', () =>
    onStage(
      async ({ a, b, world, tenant }) => {
        const [one, two] = [bytesOf(200 * KiB), bytesOf(300 * KiB)];
        for (const [device, bytes] of [
          [a, one],
          [b, two],
        ] as const) {
          device.say('media.upload.start', { media_ref: 'mu_1', kind: 'file', mime: 'a/b', size: bytes.length });
          sendBytes(device, bytes.subarray(0, 200 * KiB));
          await device.request('ping');
        }
        world.backbone.mediaFull = true;
        sendBytes(b, two.subarray(200 * KiB));
        expect(await b.request('media.upload.end', { media_ref: 'mu_1' })).toEqual(
          expect.objectContaining({
            type: 'error',
            payload: { code: 'rate_limited', message: expect.any(String), retry_after_ms: 30_000 },
          }),
        );
        // It has all that it wants room for.
        expect(await a.request('media.upload.end', { media_ref: 'mu_1' })).toMatchObject({ payload: { sha256: sha256Of(one) } });
        expect(await b.send('goes on')).toMatchObject({ type: 'message' });
        expect(await attach(b, 'mu_1')).toMatchObject(refusal('not_found'));
        // What it had is free again.
        expect(await world.store.media.storedBytes(tenant.tenant_id)).toBe(one.length);
        world.backbone.mediaFull = false;
        await world.advance(30_000);
        expect(await upload(b, 'mu_1', two)).toMatchObject({ payload: { sha256: sha256Of(two) } });
      },
      { unchecked: true },
    ));

  test('UPL9: a connection that is lost in the middle leaves nothing; the same name starts over, also on another edge', () =>
    onStage(async ({ a, tenant, world }) => {
      const bytes = bytesOf(100 * KiB);
      a.say('media.upload.start', { media_ref: 'mu_1', kind: 'file', mime: 'a/b', size: bytes.length });
      a.raw(bytes.subarray(0, 50 * KiB));
      await a.request('ping');
      a.cut();
      await world.advance(100);
      expect(await world.store.media.storedBytes(tenant.tenant_id)).toBe(0);
      expect(await world.backbone.media.sweep(Number.MAX_SAFE_INTEGER)).toBe(0);
      await a.join();
      expect(await attach(a, 'mu_1')).toMatchObject(refusal('not_found'));
      expect(await upload(a, 'mu_1', bytes)).toMatchObject({ payload: { sha256: sha256Of(bytes) } });
    }));

  test('UPL9 ENV24: the edge or the session instance dies in the middle: nothing half stored is visible, and it starts over', () =>
    onStage(
      async ({ a, world }) => {
        const bytes = bytesOf(100 * KiB);
        a.say('media.upload.start', { media_ref: 'mu_1', kind: 'file', mime: 'a/b', size: bytes.length });
        a.raw(bytes.subarray(0, 50 * KiB));
        await a.request('ping');
        world.sessions[0]!.kill();
        a.raw(bytes.subarray(50 * KiB));
        expect(await a.request('media.upload.end', { media_ref: 'mu_1' })).toMatchObject({ payload: { sha256: sha256Of(bytes) } });
        a.say('media.upload.start', { media_ref: 'mu_2', kind: 'file', mime: 'a/b', size: bytes.length });
        a.raw(bytes.subarray(0, 50 * KiB));
        await a.request('ping');
        world.edges[0]!.kill();
        await a.join(world.edges[1]!.links.dial('/ws'));
        expect(await attach(a, 'mu_2')).toMatchObject(refusal('not_found'));
        expect(await upload(a, 'mu_2', bytes)).toMatchObject({ payload: { sha256: sha256Of(bytes) } });
        expect(await attach(a, 'mu_2')).toMatchObject({ type: 'message' });
      },
      { expected: ['*'], unchecked: true },
    ));

  test.each([
    ['../../etc/passwd', 'passwd'],
    ['..\\..\\x', 'x'],
    ['/etc/passwd', 'passwd'],
    ['C:\\Windows\\win.ini', 'win.ini'],
    ['C:x', 'C_x'],
    ['a\u0000b\u0007c\n.txt', 'a\ufffdbc.txt'],
    ['photo\u202egnp.exe', 'photognp.exe'],
    ['\u200b\u2066', 'file'],
    ['..', 'file'],
    ['...', 'file'],
    ['CON', '_CON'],
    ['com1.txt', '_com1.txt'],
    ['.htaccess', 'htaccess'],
    ['<script>.html', '_script_.html'],
    ['תמונה של הכלב.jpg', 'תמונה של הכלב.jpg'],
    [`${'x'.repeat(5_000)}.jpeg`, `${'x'.repeat(250)}.jpeg`],
    [`${'🦊'.repeat(100)}.png`, `${'🦊'.repeat(62)}.png`],
    [undefined, 'file'],
  ])('UPL11 C97 C107: a file named %j is kept as %j', (given, kept) =>
    onStage(async ({ a }) => {
      await upload(a, 'mu_1', bytesOf(10), { start: given === undefined ? { filename: undefined } : { filename: given } });
      const [entry] = (await attach(a, 'mu_1')).payload.media as { media_id: string; filename: string }[];
      expect(entry!.filename).toBe(kept);
      expect(Buffer.byteLength(entry!.filename)).toBeLessThanOrEqual(255);
      expect(entry!.media_id).toMatch(/^md_[0-9a-z]+$/);
    }),
  );

  test('LIM7: large frames of an upload are not counted, many small ones are, and then it fails as a whole', () =>
    onStage(async ({ a, world }) => {
      const large = bytesOf(1_500 * 16 * KiB);
      expect(await upload(a, 'mu_1', large, { chunk_bytes: 16 * KiB })).toMatchObject({ type: 'media.upload.ack' });
      expect(await upload(a, 'mu_2', bytesOf(3_000), { chunk_bytes: 1 })).toMatchObject(refusal('rate_limited'));
      await world.advance(2_000);
      expect(await attach(a, 'mu_2')).toMatchObject(refusal('not_found'));
    }));

  test('LIM12: what is stored, and what is on its way, stays within the quota; a day has one too', () =>
    onStage(
      async ({ a, b }) => {
        expect(await upload(a, 'mu_1', bytesOf(600))).toMatchObject({ type: 'media.upload.ack' });
        b.say('media.upload.start', { media_ref: 'mu_1', kind: 'file', mime: 'a/b', size: 300 });
        await b.request('history', {}, { chat_id: 'android:default' });
        expect(await upload(a, 'mu_2', bytesOf(200))).toMatchObject(refusal('media_too_large', 'size'));
        expect(await upload(a, 'mu_2', bytesOf(100))).toMatchObject({ type: 'media.upload.ack' });
        expect(await upload(a, 'mu_3', bytesOf(1))).toMatchObject(refusal('media_too_large'));
        b.cut();
        await b.join();
        expect(await upload(a, 'mu_3', bytesOf(200))).toMatchObject({ type: 'media.upload.ack' });
        const over = await upload(a, 'mu_4', bytesOf(90));
        expect(over).toMatchObject({ ...refusal('rate_limited'), payload: { retry_after_ms: expect.any(Number) } });
      },
      { quotas: { stored_bytes: 1_000, upload_bytes_per_day: 1_200 } },
    ));

  test('UPL15: equal content is stored once for a tenant, under as many files as there are', () =>
    onStage(async ({ a, b, tenant, world }) => {
      const bytes = bytesOf(1_000);
      await upload(a, 'mu_1', bytes);
      await upload(b, 'mu_1', bytes, { start: { filename: 'other.bin' } });
      expect(await world.store.media.storedBytes(tenant.tenant_id)).toBe(1_000);
      const entries = [await attach(a, 'mu_1'), await attach(b, 'mu_1')].map(
        ({ payload }) => (payload.media as { media_id: string; filename: string }[])[0]!,
      );
      expect(entries.map(({ filename }) => filename)).toEqual(['a.bin', 'other.bin']);
      expect(entries[0]!.media_id).not.toBe(entries[1]!.media_id);
      for (const { media_id } of entries) expect(sha256Of((await pull(a, media_id)).bytes)).toBe(sha256Of(bytes));
    }));

  test('UPL14: the start is answered with what is stored, on any edge, and the rest makes it whole', () =>
    onStage(async ({ a, world }) => {
      const bytes = bytesOf(300 * KiB);
      const start = { media_ref: 'mu_1', kind: 'file', mime: 'a/b', size: bytes.length, resume: true };
      expect(await a.request('media.upload.start', start)).toMatchObject({
        type: 'media.upload.start',
        payload: { media_ref: 'mu_1', offset: 0 },
      });
      sendBytes(a, bytes.subarray(0, 200 * KiB));
      await a.request('ping');
      a.cut();
      await world.advance(100);
      await a.join();
      expect(await attach(a, 'mu_1')).toMatchObject(refusal('not_found'));
      const { offset } = (await a.request('media.upload.start', start)).payload as { offset: number };
      expect(offset).toBe(200 * KiB);
      sendBytes(a, bytes.subarray(offset));
      const ack = await a.request('media.upload.end', { media_ref: 'mu_1', sha256: sha256Of(bytes) });
      expect(ack).toMatchObject({ type: 'media.upload.ack', payload: { sha256: sha256Of(bytes) } });
      // Its ack may have been lost: asked again, it is complete.
      expect(await a.request('media.upload.start', start)).toMatchObject({ payload: { offset: bytes.length } });
      expect(await a.request('media.upload.end', { media_ref: 'mu_1' })).toMatchObject({ payload: { sha256: sha256Of(bytes) } });
      const [entry] = (await attach(a, 'mu_1')).payload.media as { media_id: string }[];
      expect(sha256Of((await pull(a, entry!.media_id)).bytes)).toBe(sha256Of(bytes));
    }));

  test('UPL14: with other bytes than those that were begun, it is refused, and nothing is kept', () =>
    onStage(async ({ a, world }) => {
      const bytes = bytesOf(300 * KiB);
      const start = { media_ref: 'mu_1', kind: 'file', mime: 'a/b', size: bytes.length, resume: true };
      await a.request('media.upload.start', start);
      sendBytes(a, bytesOf(200 * KiB));
      await a.request('ping');
      a.cut();
      await world.advance(100);
      await a.join();
      await a.request('media.upload.start', start);
      sendBytes(a, bytes.subarray(200 * KiB));
      expect(await a.request('media.upload.end', { media_ref: 'mu_1', sha256: sha256Of(bytes) })).toMatchObject(
        refusal('unsupported', 'sha256'),
      );
      expect(await attach(a, 'mu_1')).toMatchObject(refusal('not_found'));
      expect(await a.request('media.upload.start', start)).toMatchObject({ payload: { offset: 0 } });
    }));
});
