import { createServer, type Server } from 'node:net';
import { afterEach, expect, test } from '@jest/globals';
import { askPort, freePort, isFree, loopback, portNear } from './ports.js';

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});
async function listen(greeting = ''): Promise<number> {
  const port = await freePort();
  const server = createServer((socket) => socket.end(greeting));
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(port, loopback, resolve));
  return port;
}

test('a port is free until somebody listens', async () => {
  const port = await freePort();
  expect(await isFree(port)).toBe(true);
  expect(await isFree(await listen())).toBe(false);
});

test('the wanted port when it can be had, else another, never one twice', async () => {
  const taken = new Set<number>();
  const wanted = await freePort();
  expect(await portNear(wanted, taken)).toBe(wanted);
  const busy = await listen();
  const others = [await portNear(wanted, taken), await portNear(busy, taken), await portNear(70_000, taken)];
  expect(others).not.toContain(wanted);
  expect(others).not.toContain(busy);
  expect(taken.size).toBe(4);
});

test('asking a port: the first bytes, or an error', async () => {
  expect(await askPort(await listen('INFO {}'), undefined, 5_000)).toBe('INFO {}');
  await expect(askPort(await freePort(), undefined, 5_000)).rejects.toThrow();
  await expect(askPort(await listen(), undefined, 5_000)).rejects.toThrow('closed');
});
