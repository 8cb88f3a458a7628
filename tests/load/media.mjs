/**
 * Uploads and pulls against a real S3 server, with one edge of a real cluster (needs a build, and versitygw or IRIS_TEST_S3_URL):
 *   node tests/load/media.mjs throughput [MiB] [rounds] [folder for the edge's profile]     an upload and a pull beside plain aws-sdk, each round
 *   node tests/load/media.mjs many [uploads] [MiB] [storage bytes/s]                       many uploads at once over slow storage
 */
import { createHash, randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  GetObjectCommand,
  S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
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
  else await many(numbers[0] ?? 50, numbers[1] ?? 100, numbers[2] ?? 5 * MiB);
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
