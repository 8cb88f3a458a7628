/**
 * Uploads and pulls against a real S3 server, with one edge of a real cluster (needs a build, and versitygw or IRIS_TEST_S3_URL):
 *   node tests/load/media.mjs throughput [MiB]     one upload and one pull beside plain aws-sdk
 *   node tests/load/media.mjs many [uploads] [MiB] [storage bytes/s]                       many uploads at once over slow storage
 */
import { createHash, randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { GetObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { findS3, startS3 } from '@iris/devstack';
import { s3Address, s3Media } from '@iris/media';
import { cluster } from '@iris/testkit';
import WebSocket from 'ws';

const [what = 'throughput', ...given] = process.argv.slice(2);
const numbers = given.map(Number);
const MiB = 1024 * 1024;
const sleep = (ms) => new Promise((resolve) => void setTimeout(resolve, ms));
const dir = mkdtempSync(join(tmpdir(), 'iris-load-'));
const server = await startS3({
  program: findS3(),
  run_dir: dir,
  data: join(dir, 'data'),
  access: 'test',
  secret: 'test-secret',
  bucket: 'iris',
  port: 0,
}).catch(async () =>
  startS3({
    program: findS3(),
    run_dir: dir,
    data: join(dir, 'data'),
    access: 'test',
    secret: 'test-secret',
    bucket: 'iris',
    port: 29_333,
  }),
);

/** The way to the server, so many bytes a second for all connections together. */
async function slow(url, bytes_per_second) {
  const target = new URL(url);
  const port = Number(target.port);
  let next = Date.now();
  const proxy = createServer((inner) => {
    const outer = connect(port, target.hostname);
    inner.on('data', (data) => {
      inner.pause();
      next = Math.max(next, Date.now()) + (data.length / bytes_per_second) * 1000;
      setTimeout(
        () => {
          outer.write(data);
          inner.resume();
        },
        Math.max(0, next - Date.now()),
      );
    });
    outer.on('data', (data) => inner.write(data));
    for (const [one, other] of [
      [inner, outer],
      [outer, inner],
    ])
      one.on('close', () => other.destroy()).on('error', () => other.destroy());
  });
  await new Promise((resolve) => void proxy.listen(0, '127.0.0.1', resolve));
  target.port = String(proxy.address().port);
  return { url: target.href, close: () => proxy.close() };
}

const rss = (pid) => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) / 1024;

/** A device that is all about bytes. */
function device(url, token, device_id) {
  const socket = new WebSocket(url, { perMessageDeflate: false, maxPayload: 0 });
  const heard = [];
  const waiting = [];
  let bytes = 0;
  socket.on('message', (data, binary) => {
    if (binary) bytes += data.length;
    else heard.push(JSON.parse(data));
    for (const one of [...waiting]) one();
  });
  const next = (matches) =>
    new Promise((resolve) => {
      const look = () => {
        const found = heard.find(matches);
        if (found === undefined) return;
        waiting.splice(waiting.indexOf(look), 1);
        resolve(found);
      };
      waiting.push(look);
      look();
    });
  const say = (type, payload, id) => socket.send(JSON.stringify({ type, ...(id === undefined ? {} : { id }), payload }));
  const ask = async (type, payload, id) => {
    say(type, payload, id);
    return next((frame) => frame.id === id);
  };
  return {
    socket,
    next,
    say,
    ask,
    get bytes() {
      return bytes;
    },
    async open() {
      await new Promise((resolve) => void socket.on('open', resolve));
      await ask('hello', { token, device_id }, 'hello');
    },
    async write(chunk, size) {
      for (let at = 0; at < size; at += chunk.length) {
        socket.send(chunk.subarray(0, Math.min(chunk.length, size - at)));
        while (socket.bufferedAmount > 2 * MiB) await sleep(1);
      }
    },
  };
}

const chunk = randomBytes(256 * 1024);
try {
  if (what === 'throughput') await throughput(numbers[0] ?? 1024);
  else await many(numbers[0] ?? 50, numbers[1] ?? 100, numbers[2] ?? 5 * MiB);
} finally {
  await server.stop();
  rmSync(dir, { recursive: true, force: true });
}

async function throughput(size_MiB) {
  const size = size_MiB * MiB;
  const all = await cluster({
    edges: 1,
    sessions: 1,
    workers: 1,
    set: { s3_url: server.url, media_ready_ms: 1_000, upload_end_ms: 600_000 },
  });
  const quotas = { file_bytes: 2 ** 40, stored_bytes: 2 ** 40, upload_bytes_per_day: 2 ** 40 };
  const tenant = await all.tenant(quotas);
  const rate = (began) => size_MiB / ((performance.now() - began) / 1000);
  const address = s3Address(server.url);
  const client = new S3Client({
    endpoint: address.endpoint,
    region: address.region,
    forcePathStyle: true,
    credentials: { accessKeyId: 'test', secretAccessKey: 'test-secret' },
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
  });
  const results = [];
  for (let round = 0; round < 2; round++) {
    let began = performance.now();
    {
      // The SDK's own commands, four parts at once, as lib-storage does it.
      const media = s3Media({ url: server.url });
      const writer = await media.open('plain', 'plain');
      for (let at = 0; at < size; at += chunk.length) await writer.append(chunk);
      await writer.finish();
      await media.close();
    }
    const plainUp = rate(began);
    const one = device(all.edges[0].url, tenant.device_token, `d${round}`);
    await one.open();
    began = performance.now();
    one.say('media.upload.start', { media_ref: `mu${round}`, kind: 'file', mime: 'a/b', size });
    await one.write(chunk, size);
    const ack = await one.ask('media.upload.end', { media_ref: `mu${round}` }, 'end');
    if (ack.type !== 'media.upload.ack') throw new Error(JSON.stringify(ack));
    const up = rate(began);
    const said = await one.ask('message.send', { text: 'x', media_refs: [`mu${round}`] }, 'send');
    const media_id = said.payload.media[0].media_id;
    began = performance.now();
    const hash = createHash('sha256');
    const { Body } = await client.send(new GetObjectCommand({ Bucket: address.bucket, Key: 'plain/plain' }));
    for await (const part of Body) hash.update(part);
    const plainDown = rate(began);
    began = performance.now();
    one.say('media.pull', { media_id }, 'pull');
    await one.next((frame) => frame.type === 'media.pull.end');
    if (one.bytes !== size) throw new Error(`${one.bytes} of ${size} bytes`);
    results.push({ plainUp, up, plainDown, down: rate(began) });
    one.socket.terminate();
  }
  for (const { plainUp, up, plainDown, down } of results)
    console.log(
      `up ${up.toFixed(0)} MiB/s beside ${plainUp.toFixed(0)} (${((100 * up) / plainUp).toFixed(0)} %), down ${down.toFixed(0)} beside ${plainDown.toFixed(0)} (${((100 * down) / plainDown).toFixed(0)} %)`,
    );
  await all.close();
}

async function many(count, size_MiB, bytes_per_second) {
  const size = size_MiB * MiB;
  const way = await slow(server.url, bytes_per_second);
  const all = await cluster({ edges: 1, sessions: 1, workers: 1, set: { s3_url: way.url, spill_dir: dir, upload_end_ms: 600_000 } });
  const tenant = await all.tenant({ stored_bytes: 2 ** 40, upload_bytes_per_day: 2 ** 40 });
  const other = await all.tenant();
  const pair = [device(all.edges[0].url, other.device_token, 'a'), device(all.edges[0].url, other.device_token, 'b')];
  for (const one of pair) await one.open();
  const uploaders = Array.from({ length: count }, (_, n) => device(all.edges[0].url, tenant.device_token, `u${n}`));
  for (const one of uploaders) await one.open();
  await sleep(2_000);
  const { pid } = all.edges[0];
  const idle = rss(pid);
  let serial = 0;
  const latencies = async (ms) => {
    const took = [];
    for (const until = performance.now() + ms; performance.now() < until; ) {
      const text = `n${++serial}`;
      const began = performance.now();
      pair[0].say('message.send', { text });
      await pair[1].next((frame) => frame.type === 'message' && frame.payload.text === text);
      took.push(performance.now() - began);
      await sleep(50);
    }
    took.sort((a, b) => a - b);
    return { p50: took[Math.floor(took.length / 2)], p99: took[Math.floor(took.length * 0.99)] };
  };
  const quiet = await latencies(10_000);
  let sent = 0;
  let peak = 0;
  const watch = setInterval(() => {
    peak = Math.max(peak, rss(pid));
  }, 100);
  // As fast as a good line is, not as fast as memory is.
  const going = uploaders.map(async (one, n) => {
    one.say('media.upload.start', { media_ref: `mu${n}`, kind: 'file', mime: 'a/b', size });
    for (let at = 0; at < size; at += chunk.length) {
      one.socket.send(chunk.subarray(0, Math.min(chunk.length, size - at)));
      sent += chunk.length;
      while (one.socket.bufferedAmount > MiB) await sleep(2);
      await sleep(100);
    }
    one.say('media.upload.end', { media_ref: `mu${n}` }, 'end');
  });
  const busy = await latencies(25_000);
  clearInterval(watch);
  console.log(
    `${count} uploads of ${size_MiB} MiB over ${(bytes_per_second / MiB).toFixed(0)} MiB/s, ${(sent / MiB).toFixed(0)} MiB taken in: idle ${idle.toFixed(0)} MiB, peak ${peak.toFixed(0)} MiB (+${(peak - idle).toFixed(0)})`,
  );
  console.log(
    `frames of others: p50 ${quiet.p50.toFixed(1)} → ${busy.p50.toFixed(1)} ms, p99 ${quiet.p99.toFixed(1)} → ${busy.p99.toFixed(1)} ms (${((100 * busy.p99) / quiet.p99 - 100).toFixed(0)} % more)`,
  );
  for (const one of [...uploaders, ...pair]) one.socket.terminate();
  await Promise.allSettled(going);
  way.close();
  await all.close();
}
