import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type RunningAgent, startAgent } from '@iris/agent';
import { silentLog } from '@iris/runtime';
import { type AnyFrame, type Cluster, cluster, pull, sha256Of, upload } from '@iris/testkit';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import sharp from 'sharp';

type Part = { readonly type: 'text'; readonly text: string } | { readonly type: 'image_url'; readonly image_url: { readonly url: string } };
interface Asked {
  readonly authorization: string | undefined;
  readonly messages: readonly { readonly role: string; readonly content: string | readonly Part[] }[];
}

/** An endpoint in the shape of OpenAI's, which says how many pictures it was shown. */
async function endpoint() {
  const asked: Asked[] = [];
  const server = createServer(async (request, response) => {
    const body: Buffer[] = [];
    for await (const chunk of request) body.push(chunk as Buffer);
    if (request.url !== '/v1/chat/completions') return void response.writeHead(404).end('{}');
    const { messages } = JSON.parse(Buffer.concat(body).toString()) as Asked;
    asked.push({ authorization: request.headers.authorization, messages });
    const parts = messages.at(-1)!.content;
    const seen = typeof parts === 'string' ? 0 : parts.filter(({ type }) => type === 'image_url').length;
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (const content of ['I see ', `${seen} picture(s)`])
      response.write(`data: ${JSON.stringify({ model: 'seer', choices: [{ index: 0, delta: { content } }] })}\n\n`);
    response.end('data: [DONE]\n\n');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { asked, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, close: () => server.close() };
}

let all: Cluster;
let model: Awaited<ReturnType<typeof endpoint>>;
const agents: RunningAgent[] = [];
beforeAll(async () => {
  [all, model] = await Promise.all([cluster({ workers: 1 }), endpoint()]);
}, 120_000);
afterAll(async () => {
  await Promise.all(agents.map((one) => one.stop()));
  model?.close();
  await all?.close();
}, 60_000);

test('LNK40: pictures and texts from a phone are in the question that the model is asked, byte for byte as the gateway keeps them', async () => {
  const tenant = await all.tenant();
  const device = await tenant.join('phone');
  agents.push(
    startAgent({
      gateway: all.edges[1]!.agent_url,
      token: tenant.agent_token,
      backend: 'openai',
      url: model.url,
      key: 'the-key',
      model: { agent_model: 'seer' },
      log: silentLog,
    }),
  );
  const flat = (r: number) => sharp({ create: { width: 320, height: 200, channels: 3, background: { r, g: 200, b: 90 } } });
  const [photo, drawing] = [
    await flat(10)
      .withExif({ IFD0: { Make: 'Secret Camera' } })
      .jpeg()
      .toBuffer(),
    await flat(250).png().toBuffer(),
  ];
  await upload(device, 'mu_photo', photo, { start: { kind: 'image', mime: 'image/jpeg', filename: 'holiday.jpg' } });
  // Its true type is found by a worker; the phone says another.
  await upload(device, 'mu_drawing', drawing, { start: { kind: 'file', mime: 'application/octet-stream', filename: 'drawing' } });
  await upload(device, 'mu_notes', Buffer.from('Zwei Bilder: 🌈\n'), {
    start: { kind: 'file', mime: 'text/plain', filename: 'notes.txt' },
  });
  const sent = await device.send('What is on them?', { media_refs: ['mu_photo', 'mu_drawing', 'mu_notes'] });
  const said = await device.next((frame: AnyFrame) => frame.type === 'message.stop');
  expect(said.payload.final_text).toBe('I see 2 picture(s)');

  const media = sent.payload.media as unknown as readonly { readonly media_id: string }[];
  const kept = [await pull(device, media[0]!.media_id), await pull(device, media[1]!.media_id)];
  const { authorization, messages } = model.asked[0]!;
  expect(authorization).toBe('Bearer the-key');
  const parts = messages.at(-1)!.content as readonly Part[];
  const shown = parts.flatMap((part) => {
    const found = part.type === 'image_url' ? /^data:(image\/\w+);base64,(.+)$/.exec(part.image_url.url) : null;
    return found === null ? [] : [{ mime: found[1], bytes: Buffer.from(found[2]!, 'base64') }];
  });
  expect(shown.map(({ mime, bytes }) => [mime, sha256Of(bytes)])).toEqual([
    ['image/jpeg', sha256Of(kept[0]!.bytes)],
    ['image/png', sha256Of(kept[1]!.bytes)],
  ]);
  const pixel = async (bytes: Buffer) => [...(await sharp(bytes).resize(1, 1).removeAlpha().raw().toBuffer())];
  for (const [i, red] of [10, 250].entries()) expect(Math.abs((await pixel(shown[i]!.bytes))[0]! - red)).toBeLessThan(4);
  expect(shown[0]!.bytes.includes('Secret')).toBe(false);
  const text = parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n');
  expect(text).toContain('What is on them?');
  expect(text).toContain('Zwei Bilder: 🌈');
});
