import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { connect } from 'node:net';
import { runAgent } from '@iris/agent-link';
import { type Control, natsBus, subjects } from '@iris/bus';
import type { DeviceId, TokenId } from '@iris/protocol';
import { type Cluster, type ClusterTenant, cluster, pull, sendBytes, sha256Of, type TestDevice, upload } from '@iris/testkit';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import sharp from 'sharp';

const KiB = 1024;
let all: Cluster;
beforeAll(async () => {
  all = await cluster({ workers: 1 });
}, 120_000);
afterAll(() => all?.close(), 60_000);

const at = (edge: number, path: string) => new URL(path, all.edges[edge]!.url.replace(/^ws/, 'http'));
const photo = () =>
  sharp({ create: { width: 640, height: 400, channels: 3, background: { r: 10, g: 200, b: 90 } } })
    .withExif({ IFD0: { Make: 'Secret Camera' }, IFD3: { GPSLatitudeRef: 'N', GPSLatitude: '52/1 30/1 0/1' } })
    .jpeg()
    .toBuffer();
interface Entry {
  readonly media_id: string;
  readonly thumb_media_id: string;
  readonly size: number;
  readonly url: string;
}
async function sent(device: TestDevice, bytes: Uint8Array, more: Record<string, unknown> = {}): Promise<Entry> {
  const media_ref = `mu_${randomBytes(4).toString('hex')}`;
  expect(await upload(device, media_ref, bytes, { start: more })).toMatchObject({ type: 'media.upload.ack' });
  const { payload } = await device.send(`file ${media_ref}`, { media_refs: [media_ref] });
  return (payload.media as unknown as Entry[])[0]!;
}
const linked = (tenant: ClusterTenant) => tenant.join('linked', { edge: 1, caps: { media_url: true } });

test('UPL10 UPL12: a photo said to be a text, through a real worker: its type, its dimensions, a preview, and no word of where it was taken', async () => {
  const tenant = await all.tenant();
  const [a, b] = [await tenant.join('phone'), await tenant.join('tablet', { edge: 1 })];
  const original = await photo();
  const entry = await sent(a, original, { kind: 'file', mime: 'text/plain', filename: 'holiday.jpg' });
  expect(entry).toMatchObject({
    kind: 'image',
    mime: 'image/jpeg',
    width: 640,
    height: 400,
    filename: 'holiday.jpg',
    thumbhash: expect.any(String),
  });
  const { bytes } = await pull(b, entry.media_id);
  expect(bytes.length).toBe(entry.size);
  expect(bytes.includes('Secret')).toBe(false);
  expect((await sharp(bytes).metadata()).exif).toBeUndefined();
  expect(await sharp((await pull(b, entry.thumb_media_id)).bytes).metadata()).toMatchObject({ format: 'webp', width: 512, height: 320 });
});

const film = spawnSync(
  'ffmpeg',
  '-v error -f lavfi -i testsrc=size=320x180:rate=5:duration=1 -c:v mpeg4 -metadata location=+52.5+013.4/ -movflags frag_keyframe+empty_moov -f mov pipe:1'.split(
    ' ',
  ),
).stdout;
if (film === null || film.length === 0) console.warn('a test of films is left out: ffmpeg is not here');
(film?.length > 0 ? test : test.skip)(
  'UPL12: a film, through a real worker: its duration, a preview, and no word of where it was taken',
  async () => {
    expect(film.includes('+52.5')).toBe(true);
    const tenant = await all.tenant();
    const phone = await tenant.join('phone');
    const entry = await sent(phone, film, { kind: 'file', mime: 'text/plain', filename: 'film.mp4' });
    expect(entry).toMatchObject({ kind: 'video', mime: 'video/quicktime', width: 320, height: 180, thumbhash: expect.any(String) });
    expect((await pull(phone, entry.media_id)).bytes.includes('+52.5')).toBe(false);
    expect(await sharp((await pull(phone, entry.thumb_media_id)).bytes).metadata()).toMatchObject({ format: 'webp', width: 320 });
  },
);

test('CAP11 C96: links for those who asked: whole, in ranges, attachments that nothing runs, on any edge; no other link is honoured', async () => {
  const tenant = await all.tenant();
  const device = await linked(tenant);
  const bytes = new Uint8Array(randomBytes(700 * KiB));
  const entry = await sent(device, bytes, { filename: 'a "b"; é.bin' });
  const plain = await tenant.join('plain');
  await plain.sync(0);
  expect(JSON.stringify(plain.frames('message'))).not.toContain('"url"');
  const answer = await fetch(at(0, entry.url));
  expect([answer.status, sha256Of(new Uint8Array(await answer.arrayBuffer()))]).toEqual([200, sha256Of(bytes)]);
  expect(Object.fromEntries(answer.headers)).toMatchObject({
    'content-type': 'application/octet-stream',
    'content-disposition': "attachment; filename*=UTF-8''a%20_b_%3B%20%C3%A9.bin",
    'x-content-type-options': 'nosniff',
    'content-security-policy': expect.stringContaining('sandbox'),
    'accept-ranges': 'bytes',
  });
  const range = async (value: string) => {
    const part = await fetch(at(1, entry.url), { headers: { range: value } });
    return [part.status, part.headers.get('content-range'), new Uint8Array(await part.arrayBuffer())] as const;
  };
  const size = bytes.length;
  expect(await range('bytes=3-9')).toEqual([206, `bytes 3-9/${size}`, bytes.subarray(3, 10)]);
  expect(await range('bytes=-5')).toEqual([206, `bytes ${size - 5}-${size - 1}/${size}`, bytes.subarray(-5)]);
  expect((await range(`bytes=${size}-`))[0]).toBe(416);
  expect((await fetch(at(0, entry.url), { method: 'HEAD' })).headers.get('content-length')).toBe(String(size));
  const [name, signature] = entry.url.split('.');
  for (const wrong of [`${name}.${signature!.slice(0, -2)}xx`, `${name}`, '/media/', '/media/x.y', `${entry.url}.z`])
    expect((await fetch(at(0, wrong))).status).toBe(403);
  expect((await fetch(at(0, entry.url), { method: 'PUT', body: 'x' })).status).toBe(405);
  // In history and by sync as well, and of another tenant nothing.
  const { payload } = await device.history({ chat_id: 'android:default' });
  expect(JSON.stringify(payload)).toContain('"url":"/media/');
  const svg = await sent(device, new TextEncoder().encode('<svg onload="alert(1)"/>'), { mime: 'image/svg+xml', kind: 'image' });
  expect((await fetch(at(0, svg.url))).headers.get('content-type')).toBe('text/plain');
  const message_id = device.frames('message').find(({ payload }) => JSON.stringify(payload).includes(svg.media_id))!.payload.message_id!;
  await device.request('message.delete', { message_ids: [message_id] }, { chat_id: 'android:default' });
  expect((await fetch(at(0, svg.url))).status).toBe(404);
});

test('LNK40 UPL13: an agent is given links to what people send, and gives files of its own, which count once their bytes are stored', async () => {
  const tenant = await all.tenant();
  const device = await tenant.join('phone');
  const original = await photo();
  let got: Buffer | undefined;
  const agent = runAgent({
    gateway: all.edges[1]!.agent_url,
    token: tenant.agent_token,
    name: 'test',
    async onTurn(turn) {
      const [entry] = turn.message.media ?? [];
      if (entry?.url === undefined) throw new Error('no link');
      got = Buffer.from(await (await fetch(at(1, entry.url))).arrayBuffer());
      const image = await turn.upload({ kind: 'image', mime: 'image/jpeg', bytes: original, filename: 'mine.jpg' });
      turn.offer(image);
      turn.say('here', { media: [image] });
    },
  });
  try {
    const entry = await sent(device, original, { filename: 'yours.jpg' });
    const offer = await device.next('media.offer');
    const said = await device.next((frame) => frame.type === 'message' && frame.payload.role === 'assistant');
    expect(sha256Of(got!)).toBe(sha256Of((await pull(device, entry.media_id)).bytes));
    expect(offer.payload).toMatchObject({ kind: 'image', mime: 'image/jpeg', width: 640, filename: 'mine.jpg' });
    expect(said.payload.media).toMatchObject([{ media_id: offer.payload.media_id, width: 640 }]);
    expect((await pull(device, offer.payload.media_id as string)).bytes.includes('Secret')).toBe(false);
  } finally {
    await agent.stop();
  }
  // Named before its bytes are there.
  const other = tenant.agent({ install_id: 'i2' });
  await other.connect();
  const grant = await other.request('media.request', { kind: 'file', mime: 'text/plain', size: 3 });
  expect(grant).toMatchObject({
    type: 'media.grant',
    payload: { url: expect.stringMatching(/^\/media\//), expires_at: expect.any(Number) },
  });
  const put = (body: string) => fetch(at(0, (grant.payload as unknown as { url: string }).url), { method: 'PUT', body });
  expect((await put('four')).status).toBe(400);
  expect((await put('abc')).status).toBe(201);
  expect((await put('abc')).status).toBe(404);
}, 60_000);

test('UPL17: a link to upload with: in pieces, over a connection that breaks, on any edge; its hash is held to, and the file is one like any other', async () => {
  const tenant = await all.tenant();
  const [device, other] = [await tenant.join('phone'), await tenant.join('tablet', { edge: 1 })];
  const bytes = new Uint8Array(randomBytes(900 * KiB));
  const size = bytes.length;
  const start = { media_ref: 'mu_link', kind: 'file', mime: 'a/b', size, filename: '../by link.bin', sha256: sha256Of(bytes), link: true };
  const { type, payload } = await device.request('media.upload.start', start);
  expect([type, payload]).toEqual([
    'media.upload.start',
    { media_ref: 'mu_link', offset: 0, url: expect.stringMatching(/^\/media\//), expires_at: expect.any(Number) },
  ]);
  const put = async (edge: number, range: string | undefined, body?: Uint8Array<ArrayBuffer>) => {
    const headers = range === undefined ? {} : { 'content-range': range };
    const { status, headers: said } = await fetch(at(edge, payload.url as string), { method: 'PUT', headers, body: body ?? null });
    return [status, said.get('range')];
  };
  // It opened nothing on the connection.
  expect(await device.request('media.upload.end', { media_ref: 'mu_link' })).toMatchObject({ payload: { code: 'unsupported' } });
  expect(await put(0, `bytes */${size}`)).toEqual([308, null]);
  for (const wrong of [`bytes 0-${size}/${size}`, `bytes 0-9/${size + 1}`, 'bytes 5-4/*', 'pages 1-2/3'])
    expect(await put(0, wrong, bytes.subarray(0, 10))).toEqual([400, null]);
  expect(await put(0, `bytes 0-99999/${size}`, bytes.subarray(0, 100_000))).toEqual([308, 'bytes=0-99999']);
  // A hole is not left.
  expect(await put(1, `bytes 100001-${size - 1}/${size}`, bytes.subarray(100_001))).toEqual([308, 'bytes=0-99999']);
  expect(await device.send('too early', { media_refs: ['mu_link'] })).toMatchObject({ type: 'error', payload: { code: 'not_found' } });
  const { hostname, port, pathname } = at(0, payload.url as string);
  await new Promise<void>((resolve) => {
    const line = connect(Number(port), hostname, () =>
      line.write(
        `PUT ${pathname} HTTP/1.1\r\nHost: x\r\nContent-Range: bytes 100000-${size - 1}/${size}\r\nContent-Length: ${size - 100_000}\r\n\r\n`,
        () => line.write(bytes.subarray(100_000, 400_000), () => line.destroy()),
      ),
    );
    line.on('close', () => resolve());
  });
  // As a client does it: ask where to go on, and go on there. What broke off may still be coming to its end.
  let last: (number | string | null)[] = [];
  for (let round = 0; round < 50 && last[0] !== 201; round++) {
    const [, range] = await put(1, `bytes */${size}`);
    const from = Number(/=0-(\d+)$/.exec(String(range))![1]) + 1;
    expect(from).toBeGreaterThanOrEqual(100_000);
    last = await put(1, `bytes ${from}-${size - 1}/${size}`, bytes.subarray(from));
  }
  expect(last).toEqual([201, null]);
  expect(await put(0, `bytes */${size}`)).toEqual([201, null]);
  expect(await put(0, undefined, bytes)).toEqual([404, null]);
  const sending = await device.send('by link', { media_refs: ['mu_link'] });
  const [entry] = sending.payload.media as unknown as Entry[];
  expect(entry).toMatchObject({ size, sha256: sha256Of(bytes), filename: 'by link.bin' });
  expect(sha256Of((await pull(other, entry!.media_id)).bytes)).toBe(sha256Of(bytes));
  // Other bytes than were said are refused, and nothing of them is kept.
  const wrong = await device.request('media.upload.start', { ...start, media_ref: 'mu_wrong' });
  const answer = await fetch(at(0, wrong.payload.url as string), { method: 'PUT', body: new Uint8Array(size) });
  expect(answer.status).toBe(400);
  expect(await device.send('wrong', { media_refs: ['mu_wrong'] })).toMatchObject({ type: 'error', payload: { code: 'not_found' } });
  expect(await device.request('media.upload.start', { ...start, media_ref: 'mu_huge', size: 2 ** 40 })).toMatchObject({
    payload: { code: 'media_too_large' },
  });
  const asked = await fetch(at(0, payload.url as string), { method: 'OPTIONS' });
  expect([asked.status, asked.headers.get('access-control-allow-methods')]).toEqual([204, 'GET, HEAD, PUT']);
});

test('UPL17: two come by one link at once, through two edges: one of them is the file, whole, and nothing takes its place', async () => {
  const tenant = await all.tenant();
  const device = await tenant.join('phone');
  const size = 300 * KiB;
  for (let round = 0; round < 4; round++) {
    const media_ref = `mu_${round}`;
    const start = { media_ref, kind: 'file', mime: 'a/b', size, link: true };
    const url = (await device.request('media.upload.start', start)).payload.url as string;
    const files = [0, 1].map(() => new Uint8Array(randomBytes(size)));
    const put = async (n: number) => (await fetch(at(n, url), { method: 'PUT', body: files[n]! })).status;
    const answers = await Promise.all([put(0), put(1)]);
    expect([...answers].sort()).toEqual([201, 404]);
    const { payload } = await device.send(`round ${round}`, { media_refs: [media_ref] });
    const [entry] = payload.media as unknown as (Entry & { sha256: string })[];
    const whole = sha256Of(files[answers.indexOf(201)]!);
    expect([entry!.sha256, sha256Of((await pull(device, entry!.media_id)).bytes)]).toEqual([whole, whole]);
  }
}, 60_000);

const ends: readonly (readonly [string, (tenant: ClusterTenant) => Promise<Control>])[] = [
  [
    'its token is revoked',
    async ({ tenant_id }) => {
      await all.store.tokens.revoke(tenant_id, 'device-token' as TokenId, Date.now());
      return { kind: 'revoked', tenant_id, token_id: 'device-token' };
    },
  ],
  [
    'the device is revoked',
    async ({ tenant_id }) => {
      await all.store.devices.revoke(tenant_id, 'phone' as DeviceId, Date.now());
      return { kind: 'revoked', tenant_id, device_id: 'phone' };
    },
  ],
  [
    'the tenant is suspended',
    async ({ tenant_id }) => {
      await all.store.tenants.setState(tenant_id, 'suspended');
      return { kind: 'revoked', tenant_id };
    },
  ],
];
test.each(ends)(
  'C133 HEL15 UPL17: %s: what comes by a link breaks off, on any edge, and the link opens nothing more',
  async (what, end) => {
    const tenant = await all.tenant();
    const { tenant_id } = tenant;
    const size = 300 * KiB;
    const start = { media_ref: 'mu_link', kind: 'file', mime: 'a/b', size, link: true };
    const devices = [await tenant.join('phone'), await tenant.join('tablet')];
    const [mine, others] = await Promise.all(
      devices.map(async (device) => (await device.request('media.upload.start', start)).payload.url as string),
    );
    const row = async () => (await all.store.media.byRef(tenant_id, 'phone' as DeviceId, 'mu_link'))!;
    const begun = (await row()).object_id;
    const { hostname, port, pathname } = at(1, mine!);
    const line = connect(Number(port), hostname);
    const broken = new Promise((resolve) => line.on('close', resolve));
    line.on('error', () => {});
    line.write(`PUT ${pathname} HTTP/1.1\r\nHost: x\r\nContent-Length: ${size}\r\n\r\n`);
    line.write(new Uint8Array(100 * KiB));
    // It is taken once it has a place of its own.
    while ((await row()).object_id === begun);
    const bus = await natsBus({ servers: [all.nats.url] });
    bus.publish(subjects.control, new TextEncoder().encode(JSON.stringify(await end(tenant))));
    await bus.flush();
    await bus.close();
    await Promise.all([broken, devices[0]!.closed()]);
    const put = async (edge: number, url: string) => (await fetch(at(edge, url), { method: 'PUT', body: new Uint8Array(size) })).status;
    expect([await put(0, mine!), await put(1, mine!)]).toEqual([403, 403]);
    expect((await row()).state).toBe('uploading');
    // Another device's is its own.
    expect(await put(0, others!)).toBe(what === 'the device is revoked' ? 201 : 403);
  },
  60_000,
);

test('UPL9 UPL14: the edge is killed in mid-upload, at several offsets: nothing half stored is visible, and what is gone on with ends with the right hash', async () => {
  const tenant = await all.tenant();
  const bytes = new Uint8Array(randomBytes(3_000 * KiB));
  const start = { media_ref: 'mu_killed', kind: 'file', mime: 'a/b', size: bytes.length, resume: true };
  let edge = 0;
  const device = await tenant.join('phone', { edge });
  expect(await device.request('media.upload.start', start)).toMatchObject({ payload: { offset: 0 } });
  let offset = 0;
  for (const until of [100 * KiB, 1_500 * KiB + 7]) {
    sendBytes(device, bytes.subarray(offset, until));
    await device.request('ping', {});
    await all.edges[edge]!.kill();
    await device.closed();
    edge = all.edges.length;
    await all.startEdge();
    await device.join(tenant.dial(edge));
    expect(await device.send('now', { media_refs: ['mu_killed'] })).toMatchObject({ type: 'error', payload: { code: 'not_found' } });
    const again = await device.request('media.upload.start', start);
    offset = again.payload.offset as number;
    expect(offset).toBeLessThanOrEqual(until);
  }
  sendBytes(device, bytes.subarray(offset));
  const ack = await device.request('media.upload.end', { media_ref: 'mu_killed', sha256: sha256Of(bytes) });
  expect(ack).toMatchObject({ type: 'media.upload.ack', payload: { sha256: sha256Of(bytes) } });
  const { payload } = await device.send('whole', { media_refs: ['mu_killed'] });
  expect(sha256Of((await pull(device, (payload.media as unknown as Entry[])[0]!.media_id)).bytes)).toBe(sha256Of(bytes));
}, 60_000);
