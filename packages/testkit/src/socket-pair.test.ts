import type { Socket } from '@iris/edge';
import { expect, test } from '@jest/globals';
import { socketPairs } from './socket-pair.js';
import { timeline } from './timeline.js';

const utf8 = new TextEncoder();
const bytes = (text: string) => utf8.encode(text);

function pair(window_bytes = 100) {
  const time = timeline();
  const net = time.process('net');
  const pairs = socketPairs({ window_bytes, max_bytes: 1000, carry: (_, deliver) => net.soon(deliver) });
  const server: string[] = [];
  const kept: Uint8Array[] = [];
  const open = () => {
    const client: string[] = [];
    let socket!: Socket;
    const wire = pairs.open(
      { path: '/ws', address: '127.0.0.1' },
      (opened) => {
        socket = opened;
        return {
          message(data, binary) {
            kept.push(data);
            server.push(binary ? `binary ${data.length}` : new TextDecoder().decode(data));
          },
          pong(data) {
            kept.push(data);
            server.push(`pong ${new TextDecoder().decode(data)}`);
          },
          drained: () => server.push('drained'),
          closed: () => server.push('closed'),
        };
      },
      {
        message: (data) => client.push(typeof data === 'string' ? data : `binary ${data.length}`),
        ping: (data) => client.push(`ping ${new TextDecoder().decode(data)}`),
        closed: (code, reason) => client.push(`closed ${code} ${reason}`),
      },
    );
    return { wire, client, socket };
  };
  return { time, pairs, server, kept, open };
}

test('frames go both ways in order, copied when sent', async () => {
  const { time, server, open } = pair();
  const { wire, socket, client } = open();
  const data = bytes('one');
  socket.send(data);
  data.fill(0);
  socket.ping(bytes('7'));
  socket.send(bytes('two'), true);
  wire.send('up');
  wire.send(bytes('abc'));
  wire.pong(bytes('7'));
  await time.settle();
  expect(client).toEqual(['one', 'ping 7', 'binary 3']);
  expect(server).toEqual(['up', 'binary 3', 'pong 7']);
});

test('C90: what the server is given is its own during the call only', async () => {
  const { time, kept, open } = pair();
  const { wire } = open();
  wire.send(bytes('abc'));
  wire.send('text');
  wire.pong(bytes('7'));
  await time.settle();
  expect(kept.map((data) => [...data])).toEqual([3, 4, 1].map((length) => Array.from({ length }, () => 0xff)));
});

test('a client that stops reading fills its window and then the server’s buffer; reading again drains it', async () => {
  const { time, server, open } = pair(100);
  const { wire, socket, client } = open();
  wire.pause();
  for (let i = 0; i < 10; i++) {
    socket.send(bytes(`${i}`.padEnd(26)));
    await time.settle();
  }
  expect(socket.buffered()).toBe(7 * 30);
  expect(client).toEqual([]);
  wire.resume();
  await time.settle();
  expect(client.map((text) => text[0]).join('')).toBe('0123456789');
  expect(socket.buffered()).toBe(0);
  expect(server).toEqual(['drained']);
});

test('groups reach every member but the publisher, and nobody after leaving or closing', async () => {
  const { time, pairs, open } = pair();
  const [a, b, c] = [open(), open(), open()];
  for (const one of [a, b, c]) one.socket.join('g');
  a.socket.publish('g', bytes('from a'));
  pairs.publish('g', bytes('to all'));
  b.socket.leave('g');
  c.wire.cut();
  await time.settle();
  pairs.publish('g', bytes('to a'));
  await time.settle();
  expect(a.client).toEqual(['to all', 'to a']);
  expect(b.client).toEqual(['from a', 'to all']);
  expect(c.client).toEqual(['closed 1006 ']);
});

test('closing: what was sent before still arrives; the server hears of it at once', async () => {
  const { time, server, open } = pair();
  const { socket, client } = open();
  socket.send(bytes('last'));
  socket.close(4409, 'replaced');
  expect(server).toEqual(['closed']);
  socket.send(bytes('too late'));
  await time.settle();
  expect(client).toEqual(['last', 'closed 4409 replaced']);
});

test('a silent cut leaves the server with a socket that only fills', async () => {
  const { time, pairs, server, open } = pair(100);
  const { wire, socket } = open();
  wire.cut({ silent: true });
  for (let i = 0; i < 20; i++) socket.send(bytes('0123456789'));
  await time.settle();
  expect(server).toEqual([]);
  expect(pairs.count).toBe(1);
  expect(socket.buffered()).toBeGreaterThan(100);
  socket.terminate();
  expect(server).toEqual(['closed']);
  expect(pairs.count).toBe(0);
});

test('too large a message closes with 1009, and a killed server closes every client with 1006', async () => {
  const { time, pairs, server, open } = pair();
  const [a, b] = [open(), open()];
  a.wire.send('x'.repeat(1001));
  await time.settle();
  expect(a.client).toEqual(['closed 1009 ']);
  pairs.kill();
  expect(b.client).toEqual(['closed 1006 ']);
  expect(server).toEqual(['closed']);
});
