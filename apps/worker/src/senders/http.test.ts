import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { systemClock } from '@iris/runtime';
import { afterEach, expect, test } from '@jest/globals';
import { nodeHttp } from './http.js';

const servers: Server[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});
async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
const ask = { method: 'POST', headers: { 'x-one': '1' }, body: 'äö' } as const;
const patience = { timeout_ms: 10_000 };

test('status, headers and text; the same connection again', async () => {
  const sockets = new Set<unknown>();
  const url = await serve((request, response) => {
    sockets.add(request.socket);
    let text = '';
    request.on('data', (data) => {
      text += data;
    });
    request.on('end', () => response.writeHead(429, { 'Retry-After': '7' }).end(`${request.headers['x-one']} ${text}`));
  });
  const http = nodeHttp(systemClock);
  for (let i = 0; i < 3; i++) {
    const { status, headers, text } = await http({ ...ask, url }, patience);
    expect([status, headers['retry-after'], text]).toEqual([429, '7', '1 äö']);
  }
  expect(sockets.size).toBe(1);
});

test('a redirect is an answer like any other; a long answer is cut', async () => {
  const url = await serve((_, response) => response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end('x'.repeat(100_000)));
  const { status, text } = await nodeHttp(systemClock)({ ...ask, url }, patience);
  expect([status, text.length]).toEqual([302, 16 * 1024]);
});

test('no answer in time, half of one, none at all, and what is no URL: each fails with a word for it', async () => {
  const http = nodeHttp(systemClock);
  const silent = await serve(() => {});
  await expect(http({ ...ask, url: silent }, { timeout_ms: 30 })).rejects.toThrow('no answer within 30 ms');
  const half = await serve((_, response) => {
    response.writeHead(200, { 'content-length': '10' }).write('x');
    response.socket?.destroy();
  });
  await expect(http({ ...ask, url: half }, patience)).rejects.toThrow('ECONNRESET');
  await expect(http({ ...ask, url: 'http://127.0.0.1:1/' }, patience)).rejects.toThrow(/ECONNREFUSED|EPERM|EADDR/);
  await expect(http({ ...ask, url: 'ftp://127.0.0.1/' }, patience)).rejects.toThrow('not spoken');
  await expect(http({ ...ask, url: 'nonsense' }, patience)).rejects.toThrow();
});
