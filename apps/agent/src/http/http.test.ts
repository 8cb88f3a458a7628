import { gate } from '@iris/runtime';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { type ModelServer, modelServer } from '../testing/model-server.js';
import { reachingHttp, textOf } from './http.js';

let server: ModelServer;
let other: ModelServer;
beforeEach(async () => {
  server = await modelServer();
  other = await modelServer();
});
afterEach(() => Promise.all([server.close(), other.close()]));

test('redirects keep method, body and, on the same origin, credentials', async () => {
  const http = reachingHttp({ private_addresses: true });
  const asked = http(`${server.url}/a`, { method: 'POST', body: '{"x":1}', headers: { authorization: 'Bearer k', 'x-plain': '1' } });
  (await server.next()).answer(307, '', { location: '/v1/b' });
  const second = await server.next();
  expect(second).toMatchObject({ method: 'POST', path: '/v1/b', body: { x: 1 }, headers: { authorization: 'Bearer k' } });
  second.answer(308, '', { location: `${other.url}/c` });
  const third = await other.next();
  expect(third).toMatchObject({ method: 'POST', path: '/v1/c', body: { x: 1 }, headers: { 'x-plain': '1' } });
  expect(third.headers).not.toHaveProperty('authorization');
  third.answer(200, 'there');
  expect(await textOf(await asked, 100)).toBe('there');
  http.close();
});

test('a redirect is looked at like the first address', async () => {
  const http = reachingHttp({ private_addresses: false, addresses: ['127.0.0.1'], hosts: ['127.0.0.1'] });
  for (const location of ['http://127.0.0.2:1/', 'http://elsewhere.test/', 'file:///etc/passwd', 'http://169.254.169.254/latest']) {
    const asked = http(`${server.url}/a`);
    (await server.next()).answer(302, '', { location });
    await expect(asked).rejects.toMatchObject({ name: 'OutOfReach' });
  }
  http.close();
});

test('a name is connected to only where it may be: the answer of the name server counts, not the name', async () => {
  const port = new URL(server.url).port;
  // As a rebinding name server: harmless to whoever asks first, inside for the one that connects.
  let lookups = 0;
  const resolve = ((_host: string, _options: object, callback: (error: null, addresses: object[]) => void) =>
    callback(null, [{ address: lookups++ === 0 ? '127.0.0.1' : '8.8.8.8', family: 4 }])) as never;
  const closed = reachingHttp({ private_addresses: false }, gate({ private_addresses: false }, resolve));
  await expect(closed(`http://model.test:${port}/`)).rejects.toThrow('model.test is at a private address');
  expect(lookups).toBe(1);
  expect(server.seen).toEqual([]);
  lookups = 0;
  const open = reachingHttp({ private_addresses: true }, gate({ private_addresses: true }, resolve));
  const asked = open(`http://model.test:${port}/`);
  (await server.next()).answer(200, 'ok');
  expect((await asked).status).toBe(200);
  closed.close();
  open.close();
});

test('endless redirects, and one that would make a question out of an order', async () => {
  const http = reachingHttp({ private_addresses: true });
  const asked = http(`${server.url}/a`);
  for (let i = 0; i < 4; i++) (await server.next()).answer(302, '', { location: '/again' });
  await expect(asked).rejects.toThrow('too many redirects');
  const post = http(`${server.url}/a`, { method: 'POST', body: '{}' });
  (await server.next()).answer(302, '', { location: `${other.url}/b` });
  await expect(post).rejects.toThrow('give that address instead');
  http.close();
});
