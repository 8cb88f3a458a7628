import { fork } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { createServer } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { systemClock } from '@iris/runtime';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { openLine } from '../../packages/media/src/s3-line.js';
import { noS3, s3ForTests } from '../contract/s3-servers.js';
import { scratch } from '../contract/servers.js';
import { certificateFor } from '../corpus/certificate.js';

/** What a process is told that stores and reads a file there; whom it trusts is known when it starts. */
async function storeAndRead(url: string, env: Record<string, string>): Promise<unknown> {
  const child = fork(fileURLToPath(new URL('./s3-tls-main.mjs', import.meta.url)), [url], {
    env: { ...process.env, ...env },
    execArgv: [],
  });
  const ended = once(child, 'exit');
  const [said] = await once(child, 'message');
  await ended;
  return said;
}

(noS3 === undefined ? describe : describe.skip)(`an S3 server behind TLS${noS3 === undefined ? '' : `: ${noS3}`}`, () => {
  const { dir, remove } = scratch('s3-tls');
  const ca = join(dir, 'ca.pem');
  /** How each connection begins, and how many bytes it is answered. */
  const begun: { head: string; answered: number }[] = [];
  const sockets = new Set<Socket>();
  let server: Awaited<ReturnType<typeof s3ForTests>>;
  let door: ReturnType<typeof createServer>;
  let url: string;

  beforeAll(async () => {
    server = await s3ForTests();
    const inner = new URL(server.url);
    const { cert, key } = certificateFor([127, 0, 0, 1]);
    await writeFile(ca, cert);
    door = createServer({ cert, key }, (outer) => {
      const way = connect(Number(inner.port), inner.hostname);
      outer.once('data', (data) => {
        const own = { head: data.toString('latin1').split('\r\n\r\n')[0]!, answered: 0 };
        begun.push(own);
        way.on('data', (answer) => {
          own.answered += answer.length;
        });
      });
      outer.pipe(way).pipe(outer);
      for (const one of [outer, way]) {
        sockets.add(one);
        one.on('error', () => {}).on('close', () => sockets.delete(one));
      }
    });
    door.on('tlsClientError', () => {});
    await new Promise<void>((resolve) => void door.listen(0, '127.0.0.1', resolve));
    const outside = new URL(server.url.replace(/^http:/, 'https:'));
    outside.hostname = '127.0.0.1';
    outside.port = String((door.address() as AddressInfo).port);
    url = outside.href;
  }, 60_000);
  afterAll(async () => {
    for (const socket of sockets) socket.destroy();
    door?.close();
    await server?.end();
    remove();
  });

  test('a file goes there and comes back, also on lines of their own, which ask once for all that is left of it', async () => {
    const said = await storeAndRead(url, { NODE_EXTRA_CA_CERTS: ca });
    expect(said).toEqual({ stored: expect.stringMatching(/^[0-9a-f]{64}$/), read: (said as { stored: string }).stored });
    const lines = begun.filter(({ head }) => head.startsWith('GET ') && /^connection: close$/im.test(head));
    const [{ head, answered }] = lines as [(typeof lines)[0]];
    const [from, last] = /^range: bytes=(\d+)-(\d+)$/im.exec(head)!.slice(1).map(Number) as [number, number];
    expect(last).toBe(12 * 1024 * 1024 - 1);
    // What is refused is hung up on, and asked for again elsewhere.
    expect(answered).toBeGreaterThan(last - from);
  }, 60_000);

  test('one whose certificate nobody vouches for is told nothing', async () => {
    begun.length = 0;
    expect(await storeAndRead(url, { NODE_EXTRA_CA_CERTS: '' })).toEqual({
      fault: expect.stringMatching(/self.signed|DEPTH_ZERO|unable to verify/i),
    });
    // A line of its own finds out for itself.
    const { hostname, port } = new URL(url);
    const request = { protocol: 'https:', hostname, port: Number(port), path: '/iris/a', headers: { host: hostname, range: 'bytes=0-9' } };
    expect(await openLine(request, { from: 0, to: 10 }, systemClock)).toBeUndefined();
    expect(begun).toEqual([]);
  }, 60_000);
});
