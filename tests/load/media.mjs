/**
 * Uploads and pulls against a real S3 server, with one edge of a real cluster (needs a build, and versitygw or IRIS_TEST_S3_URL):
 *   node tests/load/media.mjs throughput [MiB] [rounds] [folder for the edge's profile]     an upload and a pull beside plain aws-sdk, each round
 *   node tests/load/media.mjs many [uploads] [MiB] [storage bytes/s] [MiB/s of each line] [seconds]
 *     many uploads at once over slow storage: for so long, or until all are stored (50 of 100 MiB at 5 MB/s take 1,000 s)
 */
import { fork } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  GetObjectCommand,
  S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import { runAgent } from '@iris/agent-link';
import { findS3, startS3 } from '@iris/devstack';
import { s3Address } from '@iris/media';
import { cluster } from '@iris/testkit';
import { device } from './media-client.mjs';

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

const chunk = randomBytes(256 * 1024);
try {
  if (what === 'throughput') await throughput(numbers[0] ?? 1024, numbers[1] ?? 3, given[2]);
  else await many(numbers[0] ?? 50, numbers[1] ?? 100, numbers[2] ?? 5 * MiB, numbers[3] ?? 2.5, numbers[4] ?? 120);
} finally {
  await server.stop();
  rmSync(dir, { recursive: true, force: true });
}

/**
 * The SDK as an app would use it beside us: a running hash, parts of 5 MiB, four at once as its own `lib-storage` does it; and one `GET`
 * whose bytes are hashed as they come.
 */
function plain(url) {
  const { endpoint, region, bucket: Bucket, access, secret } = s3Address(url);
  const client = new S3Client({
    endpoint,
    region,
    forcePathStyle: true,
    credentials: { accessKeyId: access, secretAccessKey: secret },
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
  });
  const part_bytes = 5 * MiB;
  return {
    async up(Key, size) {
      const hash = createHash('sha256');
      const { UploadId } = await client.send(new CreateMultipartUploadCommand({ Bucket, Key }));
      const Parts = [];
      const going = new Set();
      for (let at = 0, n = 1; at < size; n++) {
        const body = Buffer.allocUnsafe(Math.min(part_bytes, size - at));
        for (let used = 0; used < body.length; ) {
          const piece = chunk.subarray(at % chunk.length, (at % chunk.length) + Math.min(chunk.length, body.length - used));
          piece.copy(body, used);
          hash.update(piece);
          used += piece.length;
          at += piece.length;
        }
        while (going.size >= 4) await Promise.race(going);
        const one = client.send(new UploadPartCommand({ Bucket, Key, UploadId, PartNumber: n, Body: body })).then(({ ETag }) => {
          Parts[n - 1] = { PartNumber: n, ETag };
          going.delete(one);
        });
        going.add(one);
      }
      await Promise.all(going);
      await client.send(new CompleteMultipartUploadCommand({ Bucket, Key, UploadId, MultipartUpload: { Parts } }));
      return hash.digest('hex');
    },
    async down(Key) {
      const hash = createHash('sha256');
      const { Body } = await client.send(new GetObjectCommand({ Bucket, Key }));
      for await (const part of Body) hash.update(part);
      return hash.digest('hex');
    },
    close: () => client.destroy(),
  };
}

async function throughput(size_MiB, rounds, profile_dir) {
  const size = size_MiB * MiB;
  const all = await cluster({
    edges: 1,
    sessions: 1,
    workers: 1,
    set: { s3_url: server.url, media_ready_ms: 1_000, upload_end_ms: 600_000 },
    ...(profile_dir === undefined ? {} : { node_args: ['--cpu-prof', `--cpu-prof-dir=${profile_dir}`] }),
  });
  const tenant = await all.tenant({ file_bytes: 2 ** 40, stored_bytes: 2 ** 40, upload_bytes_per_day: 2 ** 40 });
  const sdk = plain(server.url);
  /** Milliseconds of a processor that the edge has spent. */
  const cpu = () => {
    const [user, system] = readFileSync(`/proc/${all.edges[0].pid}/stat`, 'utf8').split(') ')[1].split(' ').slice(11, 13);
    return (Number(user) + Number(system)) * 10;
  };
  /** @returns MiB a second, and what the edge's processor spent on each MiB */
  const timed = async (run) => {
    const [began, spent] = [performance.now(), cpu()];
    await run();
    return { rate: size_MiB / ((performance.now() - began) / 1000), edge_ms: (cpu() - spent) / size_MiB };
  };
  const same = (one, other) => {
    if (one !== other) throw new Error(`${one} is not ${other}`);
  };
  const results = [];
  for (let round = 0; round < rounds; round++) {
    let sha256;
    const plainUp = await timed(async () => {
      sha256 = await sdk.up(`plain/${round}`, size);
    });
    const one = await device(all.edges[0].url, tenant.device_token, `d${round}`);
    const up = await timed(async () => {
      one.say('media.upload.start', { media_ref: `mu${round}`, kind: 'file', mime: 'a/b', size });
      for (let at = 0; at < size; at += chunk.length) await one.send(chunk);
      const ack = await one.ask('media.upload.end', { media_ref: `mu${round}` }, 'end');
      if (ack.type !== 'media.upload.ack') throw new Error(JSON.stringify(ack));
      same(ack.payload.sha256, sha256);
    });
    const said = await one.ask('message.send', { text: 'x', media_refs: [`mu${round}`] }, 'send');
    const plainDown = await timed(async () => same(await sdk.down(`plain/${round}`), sha256));
    one.pulled();
    const down = await timed(async () => {
      one.say('media.pull', { media_id: said.payload.media[0].media_id }, 'pull');
      await one.next((frame) => frame.type === 'media.pull.end');
      same(one.pulled().sha256, sha256);
    });
    results.push({ plainUp, up, plainDown, down });
    one.close();
    // Equal content is stored once: the next round is to be stored again.
    chunk.writeUInt32LE(round + 1, 0);
  }
  const beside = (ours, other) =>
    `${ours.rate.toFixed(0)} MiB/s beside ${other.rate.toFixed(0)} (${((100 * ours.rate) / other.rate).toFixed(0)} %; edge ${ours.edge_ms.toFixed(2)} ms/MiB)`;
  for (const { plainUp, up, plainDown, down } of results) console.log(`up ${beside(up, plainUp)}, down ${beside(down, plainDown)}`);
  sdk.close();
  if (profile_dir !== undefined) {
    process.kill(all.edges[0].pid, 'SIGTERM');
    await sleep(3_000);
  }
  await all.close();
}

async function many(count, size_MiB, bytes_per_second, line_MiB, seconds) {
  const size = size_MiB * MiB;
  const way = await slow(server.url, bytes_per_second);
  const all = await cluster({
    edges: 1,
    sessions: 1,
    workers: 1,
    set: { s3_url: way.url, spill_dir: dir, upload_end_ms: 3_600_000, media_ready_ms: 1_000 },
  });
  const tenant = await all.tenant({ stored_bytes: 2 ** 40, upload_bytes_per_day: 2 ** 40 });
  const other = await all.tenant();
  const [{ url, pid }] = all.edges;
  const pair = [await device(url, other.device_token, 'a'), await device(url, other.device_token, 'b')];
  // Whoever answers nothing: without it, messages would wait in their lane until it is full.
  const agent = runAgent({ gateway: all.edges[0].agent_url, token: other.agent_token, name: 'quiet', async onTurn() {} });
  const told = { url, token: tenant.device_token, count, size, line_bytes: line_MiB * MiB };
  const uploaders = fork(fileURLToPath(new URL('media-uploaders.mjs', import.meta.url)), [JSON.stringify(told)]);
  let now = { sent: 0, ended: 0, failed: [] };
  await new Promise((resolve) => void uploaders.once('message', resolve));
  uploaders.on('message', (said) => {
    now = said;
  });
  await sleep(2_000);
  const idle = rss(pid);
  let peak = 0;
  let serial = 0;
  const percentiles = (took) => {
    took.sort((one, next) => one - next);
    return [0.5, 0.99].map((part) => took[Math.floor(took.length * part)].toFixed(1));
  };
  /** Messages from one device to another through everything, and pings that the edge answers by itself, until it is over. */
  const frames = async (isOver) => {
    const [messages, pings] = [[], []];
    while (!isOver()) {
      const text = `n${++serial}`;
      let began = performance.now();
      pair[0].say('message.send', { text });
      await pair[1].next((frame) => frame.type === 'message' && frame.payload.text === text);
      messages.push(performance.now() - began);
      began = performance.now();
      await pair[1].ask('ping', { ts: serial }, `p${serial}`);
      pings.push(performance.now() - began);
      peak = Math.max(peak, rss(pid));
      // Within what one device may send.
      await sleep(60);
    }
    const [m, p] = [percentiles(messages), percentiles(pings)];
    return { text: `messages p50 ${m[0]} p99 ${m[1]} ms, pings p50 ${p[0]} p99 ${p[1]} ms (${messages.length} each)`, m, p };
  };
  const during = (ms, or = () => false) => {
    const until = performance.now() + ms;
    return () => performance.now() >= until || or();
  };
  await frames(during(5_000));
  const quiet = await frames(during(20_000));
  console.log(`without uploads: ${quiet.text}`);
  peak = rss(pid);
  uploaders.send('go');
  const report = (name, { text, m, p }) => {
    const more = (one, before) => `${((100 * one) / before - 100).toFixed(0)} %`;
    console.log(
      `${name}: ${text}; p99 of messages ${more(m[1], quiet.m[1])} more, of pings ${more(p[1], quiet.p[1])}; ` +
        `${(now.sent / MiB).toFixed(0)} MiB taken in, ${now.ended} of ${count} stored, ${now.failed.length} failed ${JSON.stringify(now.failed[0] ?? '')}; ` +
        `edge ${idle.toFixed(0)} MiB idle, ${peak.toFixed(0)} at most (+${(peak - idle).toFixed(0)})`,
    );
  };
  const over = during(seconds * 1_000, () => now.ended + now.failed.length === count);
  report('taking in', await frames(() => over() || now.sent === count * size));
  if (!over()) report('storing', await frames(over));
  for (const one of pair) one.close();
  uploaders.kill();
  await agent.stop();
  way.close();
  await all.close();
}
