import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from '@jest/globals';
import { WebSocketServer } from 'ws';
import type { LinkSocket } from './socket.js';
import { wsConnect } from './ws-connect.js';

type Event = readonly ['open'] | readonly ['message', string] | readonly ['closed', number, string];

/** Every event of one dial, as a queue that can be awaited. */
function dial(url: string): { socket: LinkSocket; next(): Promise<Event>; events: Event[] } {
  const events: Event[] = [];
  const waiting: ((event: Event) => void)[] = [];
  const add = (event: Event) => {
    const wake = waiting.shift();
    if (wake) wake(event);
    else events.push(event);
  };
  const socket = wsConnect(
    url,
    { token: 'secret', subprotocol: 'iris-agent.v1' },
    { open: () => add(['open']), message: (text) => add(['message', text]), closed: (code, reason) => add(['closed', code, reason]) },
  );
  return {
    socket,
    events,
    next() {
      const event = events.shift();
      return event ? Promise.resolve(event) : new Promise((resolve) => waiting.push(resolve));
    },
  };
}

const servers: Server[] = [];
const listen = (server: Server): Promise<string> =>
  new Promise((resolve) => {
    servers.push(server);
    server.listen(0, '127.0.0.1', () => resolve(`ws://127.0.0.1:${(server.address() as AddressInfo).port}/agent`));
  });

afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});

test('carries text both ways, with the token and the subprotocol, and tells how it was closed', async () => {
  const server = createServer();
  const sockets = new WebSocketServer({ server });
  const heard: string[] = [];
  sockets.on('connection', (socket, request) => {
    heard.push(`${request.headers.authorization} ${socket.protocol}`);
    socket.on('message', (data) => {
      heard.push(data.toString());
      socket.send('answer ü');
      socket.send(new Uint8Array([1]));
      socket.close(4409, 'replaced');
    });
  });
  const link = dial(await listen(server));
  expect(await link.next()).toEqual(['open']);
  link.socket.send('hello ü');
  expect(await link.next()).toEqual(['message', 'answer ü']);
  expect(await link.next()).toEqual(['closed', 4409, 'replaced']);
  expect(heard).toEqual(['Bearer secret iris-agent.v1', 'hello ü']);
  link.socket.send('into the void');
  link.socket.close(1000, '');
  link.socket.terminate();
  expect(link.events).toEqual([]);
});

test.each([
  [401, 4401],
  [403, 4403],
  [503, 1006],
])('HTTP %i on the upgrade is %i', async (status, code) => {
  const server = createServer();
  server.on('upgrade', (_, socket) => socket.end(`HTTP/1.1 ${status} No\r\nContent-Length: 0\r\n\r\n`));
  expect(await dial(await listen(server)).next()).toEqual(['closed', code, `HTTP ${status}`]);
});

test('nobody there is 1006, once', async () => {
  const server = createServer();
  const url = await listen(server);
  await new Promise((resolve) => server.close(resolve));
  const link = dial(url);
  expect(await link.next()).toEqual(['closed', 1006, expect.stringContaining('ECONNREFUSED')]);
  expect(link.events).toEqual([]);
});
