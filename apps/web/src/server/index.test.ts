import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { startWeb, webLink } from './index.js';

let folder: string;
let web: Awaited<ReturnType<typeof startWeb>>;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'iris-page-'));
  const root = join(folder, 'page');
  mkdirSync(join(root, 'assets'), { recursive: true });
  writeFileSync(join(root, 'index.html'), '<title>Iris</title>');
  writeFileSync(join(root, 'assets', 'app-1a2b.js'), 'let x;');
  writeFileSync(join(folder, 'secret.txt'), 'secret');
  web = await startWeb({ host: '127.0.0.1', port: 0, root });
});
afterEach(async () => {
  await web.close();
  rmSync(folder, { recursive: true, force: true });
});

/** As the bytes stand, since clients tidy paths up. */
function ask(path: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let answer = '';
    const socket = connect(web.port, '127.0.0.1', () => socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`));
    socket.on('data', (data) => {
      answer += data.toString('latin1');
    });
    socket.on('close', () => resolve(answer));
    socket.on('error', reject);
  });
}

test('the page, with headers that keep strangers out; assets are kept by browsers', async () => {
  const page = await fetch(`http://127.0.0.1:${web.port}/?gateway=x`);
  expect(await page.text()).toBe('<title>Iris</title>');
  expect(page.headers.get('content-security-policy')).toContain("default-src 'self'");
  const asset = await fetch(`http://127.0.0.1:${web.port}/assets/app-1a2b.js`);
  expect([asset.headers.get('content-type'), asset.headers.get('cache-control')]).toEqual([
    'text/javascript; charset=utf-8',
    'public, max-age=31536000, immutable',
  ]);
});

test.each([
  '/none',
  '/assets',
  '/../secret.txt',
  '/%2e%2e/secret.txt',
  '/..%2fsecret.txt',
  '/%',
  '/%E0%A4%A',
  '/%00',
  '//',
  '/assets/..%00',
])('%s is not found, and the server lives on', async (path) => {
  expect(await ask(path)).toMatch(/^HTTP\/1\.1 404/);
  expect((await fetch(`http://127.0.0.1:${web.port}/`)).status).toBe(200);
});

test('the link carries the token where browsers send it to nobody', () => {
  const link = new URL(webLink('http://127.0.0.1:8091/', 'ws://127.0.0.1:8080/ws', 'iris-device.t.s/+'));
  expect(link.searchParams.get('gateway')).toBe('ws://127.0.0.1:8080/ws');
  expect(link.search).not.toContain('iris-device');
  expect(new URLSearchParams(link.hash.slice(1)).get('token')).toBe('iris-device.t.s/+');
});
