import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { connect, type Socket as Tcp } from 'node:net';
import { join } from 'node:path';
import { afterEach, describe, expect, jest, test } from '@jest/globals';
import WebSocket from 'ws';
import type { Opening, Socket, SocketEvents } from './socket.js';
import { startUwsServer, type UwsServer, type UwsServerOptions } from './uws-server.js';

jest.setTimeout(30_000);
const utf8 = new TextEncoder();
const open: { server: UwsServer; clients: { terminate(): void }[] }[] = [];
afterEach(() => {
  for (const { server, clients } of open.splice(0)) {
    for (const client of clients) client.terminate();
    server.close();
  }
});

interface Accepted {
  readonly socket: Socket;
  readonly opening: Opening;
  readonly messages: { text: string; binary: boolean }[];
  readonly pongs: string[];
  drained: number;
  closed: number;
}

/** A server whose sockets are kept, and what they hear. */
async function bench(options: Partial<UwsServerOptions> = {}, onMessage?: (one: Accepted, text: string) => void) {
  const accepted: Accepted[] = [];
  const waiting: (() => void)[] = [];
  const stir = () => {
    for (const look of [...waiting]) look();
  };
  const server = await startUwsServer({ host: '127.0.0.1', port: 0, ...options }, (socket, opening): SocketEvents => {
    const one: Accepted = { socket, opening, messages: [], pongs: [], drained: 0, closed: 0 };
    accepted.push(one);
    stir();
    return {
      message(data, binary) {
        const text = Buffer.from(data).toString();
        one.messages.push({ text, binary });
        onMessage?.(one, text);
        stir();
      },
      pong(data) {
        one.pongs.push(Buffer.from(data).toString());
        stir();
      },
      drained() {
        one.drained++;
        stir();
      },
      closed() {
        one.closed++;
        stir();
      },
    };
  });
  const clients: { terminate(): void }[] = [];
  open.push({ server, clients });
  const until = (found: () => boolean) =>
    new Promise<void>((resolve) => {
      const look = () => {
        if (!found()) return;
        waiting.splice(waiting.indexOf(look), 1);
        resolve();
      };
      waiting.push(look);
      look();
    });
  const dial = (path: string, more: { headers?: Record<string, string>; protocols?: string[]; origin?: string } = {}) => {
    const client = new WebSocket(`ws://127.0.0.1:${server.port}${path}`, more.protocols ?? [], { ...more, perMessageDeflate: false });
    clients.push(client);
    const heard: string[] = [];
    client.on('message', (data: Buffer) => {
      heard.push(data.toString());
      stir();
    });
    const end = new Promise<{ code: number; reason: string }>((resolve) => {
      client.on('close', (code, reason) => resolve({ code, reason: reason.toString() }));
    });
    const outcome = new Promise<number | 'open'>((resolve) => {
      client.on('open', () => resolve('open'));
      client.on('unexpected-response', (_, response) => resolve(response.statusCode ?? 0));
      client.on('error', () => {});
    });
    return { client, heard, end, outcome };
  };
  const join = async (path = '/ws', more: Parameters<typeof dial>[1] = {}) => {
    const one = dial(path, more);
    expect(await one.outcome).toBe('open');
    await until(() => accepted.length > 0);
    return { ...one, side: accepted.at(-1)! };
  };
  return { server, accepted, until, dial, join, clients };
}

describe('the upgrade', () => {
  test('HEL1 LNK1 /ws and /agent; nothing else', async () => {
    const { dial, join, accepted } = await bench();
    await join('/ws');
    const agent = await join('/agent', { protocols: ['iris-agent.v1'], headers: { authorization: 'Bearer secret' } });
    expect(accepted.map((one) => one.opening)).toEqual([
      { path: '/ws', address: '127.0.0.1' },
      { path: '/agent', address: '127.0.0.1', token: 'secret' },
    ]);
    expect(agent.client.protocol).toBe('iris-agent.v1');
    expect(await dial('/other').outcome).toBe(404);
    expect(await dial('/agent', { protocols: ['other.v1'] }).outcome).toBe(400);
    expect(await dial('/agent', { headers: { authorization: `Bearer ${'x'.repeat(513)}` } }).outcome).toBe(401);
  });

  test('HEL29 C134 an origin must be ours: the same host unless a list says otherwise; without one there is no check', async () => {
    const same = await bench();
    const port = same.server.port;
    expect(await same.dial('/ws').outcome).toBe('open');
    expect(await same.dial('/ws', { origin: `http://127.0.0.1:${port}` }).outcome).toBe('open');
    for (const origin of ['https://evil.example', 'null', `http://127.0.0.1.evil.example:${port}`, `http://127.0.0.1:${port}0`, 'x'])
      expect([origin, await same.dial('/ws', { origin }).outcome]).toEqual([origin, 403]);
    const listed = await bench({ origins: ['https://app.example'] });
    expect(await listed.dial('/ws', { origin: 'https://app.example' }).outcome).toBe('open');
    for (const origin of ['https://app.example.evil', 'http://app.example', `http://127.0.0.1:${listed.server.port}`])
      expect([origin, await listed.dial('/ws', { origin }).outcome]).toEqual([origin, 403]);
  });

  test('LIM8 the address is the nearest that is not one of our proxies', async () => {
    const address = async (trusted_proxies: string[], forwarded: string) => {
      const { join } = await bench({ trusted_proxies });
      return (await join('/ws', { headers: { 'x-forwarded-for': forwarded } })).side.opening.address;
    };
    expect(await address([], '1.2.3.4')).toBe('127.0.0.1');
    expect(await address(['127.0.0.0/8'], '1.2.3.4')).toBe('1.2.3.4');
    expect(await address(['127.0.0.1', '10.0.0.0/8'], '6.6.6.6, 1.2.3.4, 10.1.1.1')).toBe('1.2.3.4');
    expect(await address(['127.0.0.1'], 'garbage')).toBe('127.0.0.1');
    await expect(bench({ trusted_proxies: ['nonsense'] })).rejects.toThrow('trusted_proxies');
  });

  test('LIM8 a balancer of connections says the address in front of each, if it is one of ours and we listen to it', async () => {
    const address = async (options: Partial<UwsServerOptions>, more = '') => {
      const { server, accepted, until, clients } = await bench(options);
      const tcp = connect({ port: server.port, host: '127.0.0.1' });
      clients.push({ terminate: () => tcp.destroy() });
      const signature = Buffer.from('0d0a0d0a000d0a515549540a', 'hex');
      // Version 2, PROXY, TCP over IPv4, 12 bytes: from 9.8.7.6:1000 to 10.0.0.1:80.
      const header = Buffer.concat([signature, Buffer.from([0x21, 0x11, 0, 12, 9, 8, 7, 6, 10, 0, 0, 1, 0x03, 0xe8, 0, 80])]);
      const upgrade = `GET /ws HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n${more}Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n`;
      tcp.write(Buffer.concat([header, Buffer.from(upgrade)]));
      await until(() => accepted.length === 1);
      return accepted[0]!.opening.address;
    };
    expect(await address({ proxy_protocol: true, trusted_proxies: ['127.0.0.1'] })).toBe('9.8.7.6');
    expect(await address({ proxy_protocol: true, trusted_proxies: ['127.0.0.1'] }, 'X-Forwarded-For: 1.2.3.4\r\n')).toBe('9.8.7.6');
    expect(await address({ proxy_protocol: true })).toBe('127.0.0.1');
    expect(await address({ trusted_proxies: ['127.0.0.1'] })).toBe('127.0.0.1');
  });

  test('a port that is taken is said', async () => {
    const { server } = await bench();
    await expect(bench({ port: server.port })).rejects.toThrow(`${server.port}`);
  });
});

describe('order and groups', () => {
  test('ORD1 sends, publishes, pings and the close arrive in the order of the calls', async () => {
    const { join, server } = await bench({}, ({ socket }, text) => {
      if (text !== 'go') return;
      const say = (n: number) => utf8.encode(`${n}`);
      socket.send(say(1));
      socket.join('g');
      server.groups.publish('g', say(2));
      socket.send(say(3));
      socket.send(say(4));
      server.groups.publish('g', say(5));
      socket.publish('g', utf8.encode('not to itself'));
      socket.leave('g');
      server.groups.publish('g', utf8.encode('not a member'));
      socket.send(say(6));
      socket.send(utf8.encode(`7${'x'.repeat(20_000)}`));
      socket.send(say(8));
      socket.ping(utf8.encode('42'));
      for (let n = 9; n < 100; n++) socket.send(say(n));
      socket.close(4403, 'that is all');
      socket.send(say(100));
    });
    const { client, heard, end } = await join();
    const pings: [string, number][] = [];
    client.on('ping', (data: Buffer) => pings.push([data.toString(), heard.length]));
    client.send('go');
    expect(await end).toEqual({ code: 4403, reason: 'that is all' });
    expect(heard.map((one) => Number(/^\d+/.exec(one)?.[0]))).toEqual(Array.from({ length: 99 }, (_, i) => i + 1));
    expect(pings).toEqual([['42', 8]]);
  });

  test('a publish leaves out the one that it is called on, member or not', async () => {
    const { join, until } = await bench();
    const [a, b, c] = [await join(), await join(), await join()];
    for (const one of [a, b]) one.side.socket.join('g');
    a.side.socket.publish('g', utf8.encode('from a'));
    c.side.socket.publish('g', utf8.encode('from c'));
    await until(() => a.heard.length === 1 && b.heard.length === 2);
    expect([a.heard, b.heard, c.heard]).toEqual([['from c'], ['from a', 'from c'], []]);
  });

  test('many frames of one turn to many sockets, and frames of their own between, keep their order', async () => {
    const { join, until, server } = await bench();
    const all: Awaited<ReturnType<typeof join>>[] = [];
    for (let i = 0; i < 5; i++) all.push(await join());
    for (const one of all) one.side.socket.join('g');
    for (let n = 0; n < 300; n++) {
      server.groups.publish('g', utf8.encode(`g${n}`));
      const one = all[n % 5]!;
      one.side.socket.send(utf8.encode(`own${n}`));
    }
    await until(() => all.every((one) => one.heard.length === 360));
    all.forEach(({ heard }, i) => {
      expect(heard).toEqual(Array.from({ length: 300 }, (_, n) => (n % 5 === i ? [`g${n}`, `own${n}`] : [`g${n}`])).flat());
    });
  });
});

describe('buffers', () => {
  test('OUT9 a client that does not read fills the buffer, nothing is skipped, and drained is told when it is empty', async () => {
    const { join, until, server } = await bench();
    const { client, heard, side } = await join();
    side.socket.join('g');
    client.pause();
    const frame = 'x'.repeat(2_000);
    const turns = (n: number): Promise<void> =>
      n === 0
        ? Promise.resolve()
        : new Promise((resolve) => {
            for (let i = 0; i < 100; i++) server.groups.publish('g', utf8.encode(`${frame}`));
            setImmediate(() => resolve(turns(n - 1)));
          });
    // More than any kernel keeps.
    await turns(100);
    expect(side.socket.buffered()).toBeGreaterThan(1_000_000);
    expect(side.drained).toBe(0);
    client.resume();
    await until(() => heard.length === 10_000 && side.drained > 0);
    expect(side.socket.buffered()).toBe(0);
  });

  test('CLS what was sent before a close still goes out to one who reads late', async () => {
    const { join } = await bench();
    const { client, heard, side, end } = await join();
    client.pause();
    for (let i = 0; i < 5_000; i++) side.socket.send(utf8.encode('x'.repeat(2_000)));
    side.socket.close(1012, 'goes');
    expect(side.closed).toBe(1);
    client.resume();
    expect(await end).toEqual({ code: 1012, reason: 'goes' });
    expect(heard).toHaveLength(5_000);
  });

  test('a closed socket accepts every call and does nothing; closed is told once', async () => {
    const { join, until } = await bench();
    const { side, end } = await join();
    side.socket.terminate();
    side.socket.send(utf8.encode('x'));
    side.socket.ping(utf8.encode('1'));
    side.socket.join('g');
    side.socket.leave('g');
    side.socket.publish('g', utf8.encode('x'));
    side.socket.close(1000, '');
    side.socket.terminate();
    expect(side.socket.buffered()).toBe(0);
    expect((await end).code).toBe(1006);
    await until(() => side.closed === 1);
    expect(side.closed).toBe(1);
  });
});

describe('what comes in', () => {
  test('KEE4 pongs carry what the ping said; a client’s own ping is a sign of life that says nothing', async () => {
    const { join, until } = await bench();
    const { client, side } = await join();
    side.socket.ping(utf8.encode('17'));
    await until(() => side.pongs.length === 1);
    client.ping('99');
    await until(() => side.pongs.length === 2);
    expect(side.pongs).toEqual(['17', '']);
  });

  test('text and binary are told apart, and empty ones pass', async () => {
    const { join, until } = await bench();
    const { client, side } = await join();
    client.send('ü');
    client.send(Buffer.from([1]));
    client.send('');
    await until(() => side.messages.length === 3);
    expect(side.messages.map((one) => one.binary)).toEqual([false, true, false]);
    expect(side.messages[0]!.text).toBe('ü');
  });

  test('CLS8 5 MB are still read, so that 1009 can be said; beyond maxPayload it is cut off', async () => {
    const { join } = await bench({ maxPayload: 6_000_000 }, ({ socket }, text) => {
      if (text.length > 1_000_000) socket.close(1009, 'too big');
    });
    const large = await join();
    large.client.send('x'.repeat(5 * 1024 * 1024));
    expect(await large.end).toEqual({ code: 1009, reason: 'too big' });
    const larger = await join();
    larger.client.send('x'.repeat(7_000_000));
    expect((await larger.end).code).toBe(1006);
  });

  test('C128 of many strangers few may send what is too large and be told; the others are cut off before it is read; who is known counts no more', async () => {
    const { join, dial, accepted, until } = await bench({ maxPayload: 6_000_000, strangers: 40 }, ({ socket }, text) => {
      if (text.length > 1_000_000) socket.close(1009, 'too big');
    });
    const all = [];
    for (let n = 0; n < 40; n++) all.push(await join());
    expect(await dial('/ws').outcome).toBe(503);
    // Agents and relays have a quarter each.
    for (const path of ['/agent', '/relay']) {
      const outcomes = [];
      for (let n = 0; n < 11; n++) outcomes.push(await dial(path).outcome);
      expect(outcomes).toEqual([...Array<string>(10).fill('open'), 503]);
    }
    const [first, late, other] = [all[0]!, all[39]!, all[35]!];
    late.client.send('x'.repeat(1_000_000));
    expect((await late.end).code).toBe(1006);
    expect(late.side.messages).toEqual([]);
    first.client.send('x'.repeat(5_000_000));
    expect(await first.end).toEqual({ code: 1009, reason: 'too big' });
    // What the protocol allows gets through by either way.
    other.client.send('y'.repeat(256 * 1024));
    await until(() => other.side.messages.length === 1);
    for (const { socket } of accepted) socket.welcome();
    const large = await join();
    large.client.send('x'.repeat(5_000_000));
    expect(await large.end).toEqual({ code: 1009, reason: 'too big' });
  });

  test('C128 a peer that ignores the close is gone within seconds all the same', async () => {
    const { until, server, accepted, clients } = await bench();
    const tcp: Tcp = connect({ port: server.port, host: '127.0.0.1', allowHalfOpen: true });
    clients.push({ terminate: () => tcp.destroy() });
    tcp.write(
      'GET /ws HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n',
    );
    await until(() => accepted.length === 1);
    accepted[0]!.socket.close(4401, 'auth');
    const gone = new Promise<string>((resolve) => {
      tcp.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? ''));
      tcp.on('close', () => resolve('closed'));
    });
    // Once the server has let go, writing to it fails.
    const knock = setInterval(() => tcp.write(Buffer.from([0x8a, 0x80, 0, 0, 0, 0])), 250);
    try {
      expect(await gone).toMatch(/EPIPE|ECONNRESET|closed/);
    } finally {
      clearInterval(knock);
    }
  });
});

describe('POST /push/answer', () => {
  test('PSH17: the body goes to the edge, whole; its reply comes back, to any page; too much, and any other method, is refused', async () => {
    const asked: [string, string][] = [];
    const answerPush = async (body: string, address: string) => {
      asked.push([body, address]);
      return { status: 401, body: '{"error":{}}' };
    };
    const { server } = await bench({ answerPush, trusted_proxies: ['127.0.0.1'] });
    const url = `http://127.0.0.1:${server.port}/push/answer`;
    const body = JSON.stringify({ token: 't', value: 'ä'.repeat(1_000) });
    const reply = await fetch(url, { method: 'POST', body, headers: { 'x-forwarded-for': '203.0.113.7' } });
    expect([reply.status, reply.headers.get('access-control-allow-origin'), await reply.text()]).toEqual([401, '*', '{"error":{}}']);
    expect(asked).toEqual([[body, '203.0.113.7']]);
    expect((await fetch(url, { method: 'POST', body: 'x'.repeat(9_000) })).status).toBe(413);
    expect((await fetch(url, { method: 'OPTIONS' })).status).toBe(204);
    expect((await fetch(url)).status).toBe(404);
    expect(asked).toHaveLength(1);
  });

  test('without it there is no such path', async () => {
    const { server } = await bench();
    expect((await fetch(`http://127.0.0.1:${server.port}/push/answer`, { method: 'POST', body: '{}' })).status).toBe(404);
  });
});

test('the addon for this platform is the one that was looked at', () => {
  const folder = join(createRequire(import.meta.url).resolve('uWebSockets.js'), '..');
  const sums: Record<string, string> = {
    uws_linux_x64_115: 'f4fa5d7b697529b45ac8aa3d57385d9af51bc1d2b26aa9f5b68ca4361542e665',
  };
  expect(JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))).toMatchObject({ name: 'uwebsockets', version: '3.0.6' });
  expect(readFileSync(join(folder, 'source_commit'), 'utf8').trim()).toBe('b8704be92ff2b16c6dd44cc2b334158ab73eef2a');
  for (const [name, sum] of Object.entries(sums))
    expect([
      name,
      createHash('sha256')
        .update(readFileSync(join(folder, `${name}.node`)))
        .digest('hex'),
    ]).toEqual([name, sum]);
});
