import { createHash } from 'node:crypto';
import type { TestDevice } from '../../test-device.js';
import { type Check, type Ctx, like, must, need, refused, shown } from '../check.js';

const png = Uint8Array.from(
  Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64'),
);
const sha = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

async function upload(ctx: Ctx, device: TestDevice, bytes: Uint8Array, more: Record<string, unknown> = {}) {
  const media_ref = `mu_${ctx.text().replaceAll(' ', '')}`;
  device.say('media.upload.start', { media_ref, kind: 'image', mime: 'image/png', size: bytes.length, filename: 'dot.png', ...more });
  const half = Math.ceil(bytes.length / 2);
  device.raw(bytes.subarray(0, half));
  await device.request('ping', {});
  device.raw(bytes.subarray(half));
  const answer = await device.request('media.upload.end', { media_ref, ...('sha256' in more ? { sha256: more.sha256 } : {}) });
  if (answer.payload.code === 'unsupported' && device.connections.at(-1)?.ack?.payload.server_caps !== undefined) {
    const caps = device.connections.at(-1)!.ack!.payload.server_caps as { media?: boolean };
    if (caps.media !== true) throw need('media');
  }
  return { media_ref, answer };
}

/** Uploads and pulls. */
export const media: readonly Check[] = [
  {
    rules: ['UPL4'],
    async run(ctx) {
      const device = await ctx.join('phone');
      device.raw(new Uint8Array(10));
      device.raw(new Uint8Array(10));
      await device.history({ ...ctx.lane, limit: 1 });
      const errors = device.frames('error');
      must('UPL4', errors.length === 1, `two binary frames with no upload: ${shown(errors)}`);
      refused('UPL4', errors[0], 'unsupported');
      return 'error unsupported, once';
    },
  },
  {
    rules: ['UPL1', 'UPL8', 'MSG14', 'PUL1', 'PUL3', 'PUL4'],
    async run(ctx) {
      const [device, other] = [await ctx.join('phone'), await ctx.join('tablet', { door: 1 })];
      const { media_ref, answer } = await upload(ctx, device, png);
      like('UPL1', answer, { type: 'media.upload.ack', payload: { ok: true, media_ref } });
      like('UPL8', answer, { payload: { sha256: (x: unknown) => typeof x === 'string' && /^[0-9a-f]{64}$/i.test(x) } });
      const text = ctx.text('with a picture');
      const echo = await device.send(text, { ...ctx.lane, media_refs: [media_ref] });
      const entry = (echo.payload.media as { media_id: string; size: number; mime: string }[] | undefined)?.[0];
      must('MSG14', entry?.media_id.startsWith('md_') === true, `the echo is ${shown([echo])}`);
      refused('MSG14', await device.send(text, { ...ctx.lane, media_refs: [media_ref] }), 'not_found');
      // Live, with links of its own, replayed, and in history: the same entry, as is watched over.
      const linked = await ctx.join('laptop', { caps: { media_url: true } });
      await linked.sync(0);
      for (const one of [device, linked]) {
        const row = (await one.history({ ...ctx.lane, limit: 20 })).payload.messages?.find(
          ({ message_id }) => message_id === echo.payload.message_id,
        );
        like('MSG14', { type: 'row', payload: row ?? {} }, { payload: { media: [{ media_id: entry.media_id }] } });
      }
      const pull = async (more: Record<string, unknown>) => {
        const from = other.binary.length;
        const first = await other.request('media.pull', { media_id: entry!.media_id, ...more });
        const id = first.id;
        if (first.type !== 'media.pull.end') await other.next((frame) => frame.type === 'media.pull.end' && frame.id === id);
        return { first, bytes: Buffer.concat(other.binary.slice(from)) };
      };
      const whole = await pull({});
      like('PUL1', whole.first, { type: 'media.pull.ack', payload: { media_id: entry!.media_id } });
      must('PUL1', whole.bytes.length === entry!.size, `${whole.bytes.length} of ${entry!.size} bytes came`);
      const part = await pull({ offset: 3, length: 5 });
      must('PUL3', part.bytes.equals(whole.bytes.subarray(3, 8)), 'offset and length gave other bytes');
      const [one, two] = await Promise.all([pull({}), pull({})]);
      must('PUL4', one.bytes.length > 0 || two.bytes.length > 0, 'two pulls at once gave nothing');
      return `${media_ref} became ${entry!.media_id}, pulled by another device`;
    },
  },
  {
    rules: ['UPL2', 'UPL3', 'UPL5', 'UPL7'],
    async run(ctx) {
      const device = await ctx.join('phone');
      await upload(ctx, device, png);
      const start = (media_ref: string, size: number, id?: number) =>
        device.raw(
          JSON.stringify({
            type: 'media.upload.start',
            ...(id === undefined ? {} : { id }),
            payload: { media_ref, kind: 'file', mime: 'text/plain', size },
          }),
        );
      device.received.skip();
      start('mu_large', 2 ** 50, 91);
      refused('UPL5', await device.next((frame) => frame.id === 91), 'media_too_large');
      device.raw(new Uint8Array(20));
      refused('UPL2', await device.request('media.upload.end', { media_ref: 'mu_large' }), 'media_too_large');
      start('mu_one', 4);
      start('mu_two', 4, 92);
      refused('UPL3', await device.next((frame) => frame.id === 92), 'unsupported');
      device.raw(new Uint8Array(2));
      refused('UPL7', await device.request('media.upload.end', { media_ref: 'mu_one' }), 'unsupported');
      start('mu_three', 4);
      device.raw(new Uint8Array(4));
      refused('UPL7', await device.request('media.upload.end', { media_ref: 'mu_three', sha256: sha(png) }), 'unsupported');
      return 'too large, second start, too few bytes, wrong sha256: each refused';
    },
  },
  {
    rules: ['UPL10'],
    async run(ctx) {
      const device = await ctx.join('phone');
      const { media_ref, answer } = await upload(ctx, device, png, { kind: 'file', mime: 'text/plain' });
      like('UPL10', answer, { type: 'media.upload.ack' });
      const echo = await device.send(ctx.text('mislabelled'), { ...ctx.lane, media_refs: [media_ref] });
      const entry = (echo.payload.media as { media_id: string; mime: string; kind: string; url?: string }[] | undefined)?.[0];
      must('UPL10', entry?.mime === 'image/png' && entry.kind === 'image', `it is stored as ${JSON.stringify(entry)}`);
      return `stored as ${entry.mime}`;
    },
  },
  {
    rules: ['CAP11'],
    async run(ctx) {
      const device = await ctx.join('phone', { caps: { media_url: true } });
      const { media_ref } = await upload(ctx, device, png);
      const echo = await device.send(ctx.text('with a url'), { ...ctx.lane, media_refs: [media_ref] });
      const entry = (echo.payload.media as { url?: string }[] | undefined)?.[0];
      must('CAP11', typeof entry?.url === 'string', 'no url with the media_url cap');
      return 'its entry has a url';
    },
  },
  {
    rules: ['UPL17'],
    needs: ['socket'],
    async run(ctx) {
      const device = await ctx.join('phone');
      const bytes = new TextEncoder().encode(ctx.text('by a link'));
      const { length: size } = bytes;
      const media_ref = `mu_${ctx.text().replaceAll(' ', '')}`;
      const told = await device.request('media.upload.start', { media_ref, kind: 'file', mime: 'text/plain', size, link: true });
      if (told.type === 'error' && told.payload.code === 'unsupported') throw need('media, and links to it');
      const { url } = like('UPL17', told, { type: 'media.upload.start', payload: { media_ref, offset: 0 } }).payload as { url?: string };
      must('UPL17', typeof url === 'string', 'no url came');
      const put = async (range?: string) => {
        const said = range === undefined ? { body: bytes } : { headers: { 'content-range': range } };
        return (await fetch(new URL(url, ctx.target.doors[0]!.http), { method: 'PUT', ...said })).status;
      };
      const statuses = [await put(`bytes */${size}`), await put(), await put(`bytes */${size}`)];
      must('UPL17', statuses.join() === '308,201,201', `before, with the bytes, and behind them: ${statuses.join()}`);
      like('UPL17', await device.send(ctx.text('here it is'), { ...ctx.lane, media_refs: [media_ref] }), { type: 'message' });
      return 'asked where to begin, put there, and sent in a message';
    },
  },
  {
    rules: ['UPL9', 'UPL11', 'UPL16', 'PUL2', 'ORD6'],
    async run(ctx) {
      const device = await ctx.join('phone');
      const { media_ref } = await upload(ctx, device, png, { filename: '../../etc/\u0007pass\\wd.png' });
      const echo = await device.send(ctx.text('with a name'), { ...ctx.lane, media_refs: [media_ref] });
      const entry = (echo.payload.media as { media_id: string; filename?: string }[] | undefined)?.[0];
      must(
        'UPL11',
        entry?.filename !== undefined &&
          [...entry.filename].every((one) => one >= ' ' && one !== '/' && one !== '\\') &&
          !entry.filename.includes('..'),
        `its filename is ${JSON.stringify(entry?.filename)}`,
      );
      const large = new Uint8Array(200 * 1024).fill(7);
      const ref = `mu_${ctx.text().replaceAll(' ', '')}`;
      device.say('media.upload.start', { media_ref: ref, kind: 'file', mime: 'application/octet-stream', size: large.length });
      device.raw(large);
      const ending = device.request('media.upload.end', { media_ref: ref });
      const told = await device.send(ctx.text('large'), { ...ctx.lane, media_refs: [ref] });
      like('UPL16', told, { type: 'message' });
      like('UPL16', await ending, { type: 'media.upload.ack' });
      const media_id = (told.payload.media as { media_id: string }[])[0]!.media_id;
      const from = device.binary.length;
      const pulling = device.request('media.pull', { media_id });
      for (let i = 0; i < 5; i++) like('ORD6', await device.request('ping', { ts: i }), { type: 'pong', payload: { ts: i } });
      const { id } = await pulling;
      await device.next((frame) => frame.type === 'media.pull.end' && frame.id === id);
      const frames = device.binary.slice(from);
      must(
        'PUL2',
        frames.length >= 4 && frames.every(({ length }) => length <= 64 * 1024),
        `200 KiB came as ${frames.map(({ length }) => length).join()}`,
      );
      const size = 50;
      device.say('media.upload.start', { media_ref: 'mu_again', kind: 'image', mime: 'image/png', size });
      device.raw(new Uint8Array(10));
      device.cut();
      await device.join();
      refused('UPL9', await device.send(ctx.text('never'), { ...ctx.lane, media_refs: ['mu_again'] }), 'not_found');
      device.say('media.upload.start', { media_ref: 'mu_again', kind: 'image', mime: 'image/png', size });
      device.raw(new Uint8Array(size));
      like('UPL9', await device.request('media.upload.end', { media_ref: 'mu_again' }), { type: 'media.upload.ack' });
      return `named ${JSON.stringify(entry.filename)}; 200 KiB in ${frames.length} frames; a broken upload left nothing`;
    },
  },
  {
    rules: ['UPL14', 'UPL15'],
    async run(ctx) {
      const device = await ctx.join('phone');
      const bytes = new TextEncoder().encode(ctx.text('bytes to go on with ').repeat(20));
      const start = {
        media_ref: `mu_${ctx.text().replaceAll(' ', '')}`,
        kind: 'file',
        mime: 'text/plain',
        size: bytes.length,
        resume: true,
      };
      like('UPL14', await device.request('media.upload.start', start), { type: 'media.upload.start', payload: { offset: 0 } });
      device.raw(bytes.subarray(0, 30));
      await device.request('ping', {});
      device.cut();
      await device.join();
      const again = await device.request('media.upload.start', start);
      const offset = again.payload.offset as number;
      must('UPL14', again.type === 'media.upload.start' && offset >= 0 && offset <= 30, `went on at ${shown([again])}`);
      device.raw(bytes.subarray(offset));
      like('UPL14', await device.request('media.upload.end', { media_ref: start.media_ref }), { payload: { sha256: sha(bytes) } });
      const { answer } = await upload(ctx, device, bytes, { kind: 'file' });
      like('UPL15', answer, { type: 'media.upload.ack', payload: { sha256: sha(bytes) } });
      return `gone on with at ${offset}; the same bytes again are another file`;
    },
  },
  {
    rules: ['LIM12'],
    needs: ['admin'],
    async run(ctx) {
      const space = await ctx.own({ file_bytes: 1000, stored_bytes: 150 });
      const device = await space.join('phone');
      const { answer } = await upload(ctx, device, png);
      like('LIM12', answer, { type: 'media.upload.ack' });
      const start = (size: number) =>
        device.request('media.upload.start', { media_ref: 'mu_over', kind: 'file', mime: 'text/plain', size }, { within_ms: 1_000 });
      refused('LIM12', await start(1001), 'media_too_large');
      return 'a file over the quota is media_too_large';
    },
  },
  {
    rules: ['PUL5'],
    async run(ctx) {
      const device = await ctx.join('phone');
      const answer = await device.request('media.pull', { media_id: 'md_none' });
      refused('PUL5', answer, 'not_found');
      return 'error not_found';
    },
  },
];
